#include "collective/proving.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/element.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::collective {
namespace {

bool is_16_bit_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

void expect_types_of_messages(const Case& tried, const Task& task, const plan::Plan& plan) {
  const Element raw = element_of(tried.dtype);
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role != plan::Role::kSlot && buffer.role != plan::Role::kView) continue;
    // Where everyone adds up for itself, what travels is what its sender adds, unrounded.
    const bool adds_for_itself =
        tried.scheme.across == Algorithm::kExchange || tried.scheme.across == Algorithm::kDoubling;
    if (tried.scheme.fast && is_16_bit_float(tried.dtype) && !adds_for_itself) {
      EXPECT_EQ(buffer.element, raw);
    } else {
      EXPECT_TRUE(buffer.element == raw || buffer.element == task.accumulator ||
                  buffer.element == task.output)
          << to_string(buffer.element);
    }
  }
}

}  // namespace

std::string Case::name() const {
  return fmt::format("{} number {} on {}, {} of {}{}{}", to_string(scheme), scheme.number, layout.name(),
                     name_of(op), to_string(dtype), in_place ? ", in place" : "",
                     scheme.fast ? ", fast" : "");
}

Task Case::task() const { return layout.task(op, dtype, in_place && result_dtype(op, dtype) == dtype); }

plan::Plan Case::plan() const { return all_reduce(layout.topology(), task(), scheme); }

void expect_proved(const Case& tried) {
  SCOPED_TRACE(tried.name());
  const Task task = tried.task();
  const plan::Plan plan = all_reduce(tried.layout.topology(), task, tried.scheme);
  plan::Proof proof;
  ASSERT_NO_THROW(proof = plan::verify(plan)) << plan::to_text(plan);
  EXPECT_EQ(plan.algorithm, to_string(tried.scheme));
  const bool claims = plan.order == "canonical";
  EXPECT_EQ(is_canonical(tried.layout.topology(), task, tried.scheme), claims);
  if (tried.scheme.fast) {
    EXPECT_TRUE(proof.packs.at(0).canonical || !claims) << plan.order;
  } else {
    EXPECT_EQ(proof.packs.at(0).canonical, claims) << plan.order;
    EXPECT_TRUE(claims || has_ring(tried.scheme)) << plan.order;
  }
  expect_types_of_messages(tried, task, plan);
}

void expect_proved(const Grid& grid) {
  std::size_t proved = 0;
  for (const Scheme& named : all_schemes()) {
    for (const std::int32_t workers : grid.workers) {
      for (const std::int32_t devices : grid.devices) {
        if (workers * devices > grid.most || workers * devices <= grid.fewest) continue;
        for (const std::uint32_t shards : grid.shards) {
          Case tried{{workers, devices, {}}, named};
          tried.scheme.shards = shards;
          tried.scheme.number = static_cast<std::size_t>(workers) + static_cast<std::size_t>(devices);
          tried.in_place = (shards + static_cast<std::uint32_t>(workers + devices)) % 3 == 0;
          expect_proved(tried);
          if (::testing::Test::HasFailure()) return;
          ++proved;
        }
      }
    }
  }
  std::cout << proved << " plans proved\n";
}

}  // namespace onesum::collective
