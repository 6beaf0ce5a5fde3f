// One run of a kernel of the host's against the reference, and a fixture that has one for each instruction
// set.
#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "engine/guarded.h"
#include "engine/host/reduce_kernels.h"
#include "engine/host/simd_kernels.h"
#include "engine/reference.h"

namespace onesum::engine::testing {

// Everything one run of a kernel depends on.
struct Case {
  ReduceForm form;
  std::vector<std::uint8_t> merges;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t source_misalignment = 0;  // of source i: i times this, more or less
  std::size_t destination_misalignment = 0;
  bool same_misalignment = false;  // of all destinations
  int aliased = -1;                // this source is the first destination
};

inline std::string describe(const Case& c) {
  std::ostringstream text;
  text << to_string(c.form.combine) << " " << to_string(c.form.input) << "/" << to_string(c.form.accumulator)
       << "/" << to_string(c.form.output) << " divisor " << c.form.divisor << " destinations "
       << c.form.destinations << " first " << c.first << " count " << c.count
       << (c.form.streaming ? " streaming" : "") << " misaligned " << c.source_misalignment << " "
       << c.destination_misalignment << " aliased " << c.aliased << " on " << host::simd_target()
       << " merges";
  for (const std::uint8_t merges : c.merges) text << " " << int{merges};
  return text.str();
}

// Runs the case on `content` and says what is wrong with the result; empty if nothing.
inline std::string run_on(const Case& c, const std::vector<Bytes>& content) {
  ReduceForm form = c.form;
  form.merges = c.merges;
  std::vector<Guarded> sources;
  std::vector<Guarded> destinations;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < content.size(); ++i) {
    sources.emplace_back(content[i], i * c.source_misalignment + c.source_misalignment);
  }
  for (std::size_t i = 0; i < form.destinations; ++i) {
    destinations.emplace_back(c.count * size_of(form.output),
                              (c.same_misalignment ? 1 : i + 1) * c.destination_misalignment);
  }
  // The kernel sees tables of vectors that begin `first` elements earlier.
  const auto before = [&](std::byte* data, Element element) { return data - c.first * size_of(element); };
  for (Guarded& source : sources) from.push_back(before(source.data(), form.input));
  for (Guarded& destination : destinations) to.push_back(before(destination.data(), form.output));
  if (c.aliased >= 0) to[0] = before(sources[static_cast<std::size_t>(c.aliased)].data(), form.output);

  host::find_reduce_kernel(form)({&form, to.data(), from.data(), c.first, c.count});

  const Bytes expected = reference_reduce(form, content, c.count);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const Guarded& written =
        i == 0 && c.aliased >= 0 ? sources[static_cast<std::size_t>(c.aliased)] : destinations[i];
    if (const std::string d = difference(form.output, written.content(), expected); !d.empty()) return d;
    if (!destinations[i].guards_are_intact()) return "wrote beyond a destination";
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].guards_are_intact()) return "wrote beyond a source";
    if (static_cast<int>(i) != c.aliased && sources[i].content() != content[i]) return "changed a source";
  }
  return {};
}

// Every test runs once for each instruction set that this machine has.
#if HWY_ARCH_X86
inline constexpr std::int64_t kTargets[] = {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR};
#else
inline constexpr std::int64_t kTargets[] = {HWY_NEON, HWY_SCALAR};
#endif

class Kernels : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (GetParam() != HWY_SCALAR && (hwy::SupportedTargets() & GetParam()) == 0) {
      GTEST_SKIP() << "this machine has no " << hwy::TargetName(GetParam());
    }
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
    if (host::simd_target() != hwy::TargetName(GetParam())) {
      GTEST_SKIP() << "compiled without kernels for " << hwy::TargetName(GetParam());
    }
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  void check(const Case& c) {
    std::vector<Bytes> content;
    for (std::size_t i = 0; i < c.merges.size(); ++i)
      content.push_back(random_elements(c.form.input, c.count, random_));
    ASSERT_EQ(run_on(c, content), "") << describe(c);
  }

  Case make(Element input, Element accumulator, Element output, std::size_t sources, std::size_t count) {
    Case c;
    c.form.input = input;
    c.form.accumulator = accumulator;
    c.form.output = output;
    c.merges = canonical_tree(sources);
    c.first = count % 7;
    c.count = count;
    return c;
  }

  std::mt19937 random_{2024};
};

// For INSTANTIATE_TEST_SUITE_P.
inline std::string name_of_target(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace onesum::engine::testing
