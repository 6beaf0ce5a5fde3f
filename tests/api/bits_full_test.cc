// The larger grid of tests/api/bits_test.cc: every type, up to 33 replicas, every way to ask, sizes around
// segments, and sizes at which all threads and stores past the caches take part.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/engines.h"
#include "conformance/ways.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::all_hold;
using testing::cpus;
using testing::Fill;
using testing::random_value;
using testing::simulated;
using testing::Way;

class BitsFull : public ::testing::TestWithParam<DType> {
 protected:
  void expect_right_every_way(const PerReplica& value) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const std::vector<std::byte> expected = simulated(ops_, op, value, value);
      for (const Way way : testing::kAllWays) {
        if (!testing::is_possible(way, op, value)) continue;
        ASSERT_TRUE(all_hold(testing::reduced(ops_, op, {value}, way).at(0), expected))
            << (op == ReduceOp::kSum ? "sum of " : "mean of ") << value.size() << " replicas of shape "
            << value.tensor(0).shape().to_string() << ", " << testing::name_of(way);
      }
    }
  }

  ReductionToOneDevice ops_;
};

TEST_P(BitsFull, EveryNumberOfReplicasEveryWay) {
  for (std::size_t n = 1; n <= 33; ++n) {
    for (const std::int64_t elements : {1, 2, 3, 17, 64, 251, 4099}) {
      const Fill how = (n + static_cast<std::size_t>(elements)) % 2 == 0 ? Fill::kPlain : Fill::kWild;
      expect_right_every_way(random_value(GetParam(), Shape{elements}, cpus(n), n, how));
    }
  }
}

TEST_P(BitsFull, AroundSegments) {
  for (const std::size_t n : {1U, 2U, 3U, 4U, 7U, 8U, 17U, 33U}) {
    const std::size_t traffic = 2 * n * size_of(GetParam());
    const auto segment = static_cast<std::int64_t>(
        std::max<std::size_t>(64, api::host_engine().segment_bytes() / traffic / 64 * 64));
    for (const std::int64_t elements :
         {segment - 63, segment - 1, segment + 1, 3 * segment + 64, 9 * segment + 5}) {
      expect_right_every_way(random_value(GetParam(), Shape{elements}, cpus(n), n));
    }
  }
}

TEST_P(BitsFull, ManyMegabytes) {
  const auto elements = static_cast<std::int64_t>((std::size_t{12} << 20) / size_of(GetParam()) + 3);
  const PerReplica value = random_value(GetParam(), Shape{elements}, cpus(3), 5, Fill::kWild);
  expect_right_every_way(value);
}

TEST_P(BitsFull, BatchesOfManySizes) {
  std::vector<PerReplica> values;
  for (std::int64_t i = 0; i < 200; ++i)
    values.push_back(random_value(GetParam(), Shape{i * i % 7919}, cpus(4), static_cast<std::uint64_t>(i)));
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    for (const Way way : testing::kAllWays) {
      if (!testing::is_possible(way, op, values[0])) continue;
      const std::vector<PerReplica> results = testing::reduced(ops_, op, values, way);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(all_hold(results[i], simulated(ops_, op, values[i], "CPU:0")))
            << "value " << i << ", " << testing::name_of(way);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, BitsFull, ::testing::ValuesIn(testing::kSummable),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace onesum
