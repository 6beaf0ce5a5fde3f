// The larger grids of same_bits_test.cc: of floats the whole product of algorithms, layouts, shards, packs,
// types and operations; of integers, rings and simulated plans a part, whose points take turns.
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "same_bits.h"

namespace onesum {
namespace {

using testing::Layout;
using testing::SameBitsBatch;

class SameBitsProduct : public ::testing::TestWithParam<std::tuple<int, DType>> {
 protected:
  testing::Quiet quiet_;
};

// Every point is compared with the one sum of these replicas: all of them have the same bits. Ways to ask
// take turns.
TEST_P(SameBitsProduct, IsOneResult) {
  const auto [replicas, dtype] = GetParam();
  const auto n = static_cast<std::size_t>(replicas);
  const SameBitsBatch batch(dtype, n, testing::few_shapes(n));
  std::size_t turn = 0;
  const auto expect_same_bits = [&](testing::SameBitsCase point, const std::vector<PerReplica>& values) {
    MultiWorkerAllReduce ops = testing::ops_of(point);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      point.op = op;
      point.way = testing::kAllWays[turn++ % std::size(testing::kAllWays)];
      testing::expect_canonical_bits(point, batch, ops, values);
    }
  };
  for (const Layout& layout : testing::layouts_of(replicas)) {
    const std::vector<PerReplica> values = batch.on(testing::device_names(layout));
    for (const std::string& algorithm : testing::canonical_algorithms()) {
      for (const int shards : {1, 2, 3}) {
        for (const int packs : {0, 1, 3}) expect_same_bits({algorithm, shards, packs, layout, dtype}, values);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, SameBitsProduct,
                         ::testing::Combine(::testing::ValuesIn(testing::kSameBitsReplicas),
                                            ::testing::ValuesIn(testing::kSameBitsFloats)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

class SameBitsFull : public ::testing::TestWithParam<int> {
 protected:
  testing::Quiet quiet_;
  testing::SameBitsTurns turns_;
};

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
