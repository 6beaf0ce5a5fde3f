#include "plan/crossing.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "plan/sample_plans.h"

namespace onesum::plan {
namespace {

const sample::Types kSum = sample::types_of(ReduceOp::kSum, DType::kFloat32);

// Everyone sends a quarter, and the result of its own, to each of the three others.
TEST(Crossing, CountsWhatLeavesAMachine) {
  const Plan plan = sample::direct(4, kSum);
  const auto sent = [&](const std::vector<std::int32_t>& machines) {
    std::vector<std::uint64_t> numbers;
    for (const LinkCost& machine : sent_between_machines(plan, {{400}, {}}, machines)) {
      numbers.push_back(machine.messages);
      EXPECT_EQ(machine.bytes, machine.messages * 400);
    }
    return numbers;
  };
  EXPECT_EQ(sent({0, 1, 2, 3}), (std::vector<std::uint64_t>{6, 6, 6, 6}));
  EXPECT_EQ(sent({0, 0, 1, 1}), (std::vector<std::uint64_t>{8, 8}));
  EXPECT_EQ(sent({1, 0, 1, 1}), (std::vector<std::uint64_t>{6, 6}));
  EXPECT_EQ(sent({0, 0, 0, 0}), (std::vector<std::uint64_t>{0}));
}

// A ring leaves a machine at its last worker.
TEST(Crossing, OfARingIsWhatItsBordersPass) {
  const std::vector<LinkCost> sent =
      sent_between_machines(sample::ring(4, kSum), {{400}, {}}, std::vector{0, 0, 1, 1});
  ASSERT_EQ(sent.size(), 2U);
  for (const LinkCost& machine : sent) EXPECT_EQ(machine.bytes, 6U * 400);
}

}  // namespace
}  // namespace onesum::plan
