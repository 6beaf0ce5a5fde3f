// The larger grid of same_bits_test.cc: every algorithm on every layout with every type; shards, packs,
// operations and ways to ask take turns.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "same_bits.h"

namespace onesum {
namespace {

using testing::Layout;
using testing::SameBitsBatch;

class SameBitsFull : public ::testing::TestWithParam<int> {
 protected:
  testing::Quiet quiet_;
  testing::SameBitsTurns turns_;
};

TEST_P(SameBitsFull, EveryAlgorithmOnEveryLayout) {
  for (const DType dtype : testing::kSameBitsFloats) {
    const SameBitsBatch batch(dtype, static_cast<std::size_t>(GetParam()));
    for (const Layout& layout : testing::layouts_of(GetParam())) {
      for (const std::string& algorithm : testing::canonical_algorithms()) {
        for (int i = 0; i < 4; ++i) {
          testing::expect_canonical_bits(turns_.next(algorithm, layout, dtype), batch);
        }
      }
    }
  }
}

TEST_P(SameBitsFull, EveryShardsAndPacks) {
  const SameBitsBatch batch(DType::kFloat32, static_cast<std::size_t>(GetParam()));
  const std::vector<Layout> layouts = testing::layouts_of(GetParam());
  std::size_t turn = 0;
  for (const std::string& algorithm : testing::canonical_algorithms()) {
    for (int i = 0; i < 18; ++i) {
      const Layout& layout = layouts[turn++ % layouts.size()];
      testing::expect_canonical_bits(turns_.next(algorithm, layout, DType::kFloat32), batch);
    }
  }
}

TEST_P(SameBitsFull, Integers) {
  for (const DType dtype : testing::kSameBitsIntegers) {
    const SameBitsBatch batch(dtype, static_cast<std::size_t>(GetParam()));
    const std::vector<Layout> layouts = testing::layouts_of(GetParam());
    std::size_t turn = 0;
    for (const auto* algorithms : {&testing::canonical_algorithms(), &testing::ring_algorithms()}) {
      for (const std::string& algorithm : *algorithms) {
        const Layout& layout = layouts[turn++ % layouts.size()];
        testing::expect_canonical_bits(turns_.next(algorithm, layout, dtype), batch);
      }
    }
  }
}

TEST_P(SameBitsFull, Simulated) {
  const std::vector<Layout> layouts = testing::layouts_of(GetParam());
  std::size_t turn = 0;
  for (const DType dtype : testing::kSameBitsFloats) {
    const SameBitsBatch batch(dtype, static_cast<std::size_t>(GetParam()));
    for (const Layout& layout : layouts) {
      for (const std::string& algorithm : testing::ring_algorithms()) {
        if (turn++ % 3 == 0) testing::expect_simulated_bits(turns_.next(algorithm, layout, dtype), batch);
      }
      for (const std::string& algorithm : testing::canonical_algorithms()) {
        if (turn++ % 7 == 0) testing::expect_simulated_bits(turns_.next(algorithm, layout, dtype), batch);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, SameBitsFull, ::testing::ValuesIn(testing::kSameBitsReplicas),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace onesum
