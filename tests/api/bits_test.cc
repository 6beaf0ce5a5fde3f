// docs/semantics.md, 3.3 to 3.10. Every result equals the numeric simulation of its plan bit by bit, on every
// device, in every run, whatever the size, and however it is asked for.
#include "support/bits.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/engines.h"
#include "conformance/ways.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::all_hold;
using testing::cpus;
using testing::Fill;
using testing::random_value;
using testing::simulated;
using testing::Way;

constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};

class Bits : public ::testing::TestWithParam<DType> {
 protected:
  void expect_right(const PerReplica& value, Way way) {
    for (const ReduceOp op : kBoth) {
      if (!testing::is_possible(way, op, value)) continue;
      const std::vector<std::byte> expected = simulated(ops_, op, value, value);
      const std::vector<PerReplica> results = testing::reduced(ops_, op, {value}, way);
      ASSERT_EQ(results.at(0).size(), value.size());
      ASSERT_TRUE(all_hold(results[0], expected))
          << (op == ReduceOp::kSum ? "sum of " : "mean of ") << value.size() << " replicas of shape "
          << value.tensor(0).shape().to_string() << ", " << testing::name_of(way);
    }
  }

  ReductionToOneDevice ops_;
};

TEST_P(Bits, EveryNumberOfReplicas) {
  for (std::size_t n = 1; n <= 17; ++n) {
    for (const std::int64_t elements : {0, 1, 2, 3, 61, 1009}) {
      const Fill how = n % 2 == 0 ? Fill::kPlain : Fill::kWild;
      expect_right(random_value(GetParam(), Shape{elements}, cpus(n), n, how), Way::kReturned);
    }
  }
  for (const Fill how : {Fill::kPlain, Fill::kWild}) {
    expect_right(random_value(GetParam(), Shape{7, 31}, cpus(33), 3, how), Way::kReturned);
    expect_right(random_value(GetParam(), Shape{}, cpus(64), 4, how), Way::kInto);
  }
}

TEST_P(Bits, EveryWayToAsk) {
  for (const Way way : testing::kAllWays) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 8U}) {
      expect_right(random_value(GetParam(), Shape{3, 67}, cpus(n), n, Fill::kPlain), way);
      expect_right(random_value(GetParam(), Shape{129}, cpus(n), n, Fill::kWild), way);
    }
  }
}

TEST_P(Bits, AroundSegments) {
  for (const std::size_t n : {1U, 2U, 3U}) {
    const std::size_t traffic = 2 * n * size_of(GetParam());
    const auto segment = static_cast<std::int64_t>(
        std::max<std::size_t>(64, api::host_engine().segment_bytes() / traffic / 64 * 64));
    for (const std::int64_t elements : {segment - 1, segment, segment + 1, 2 * segment, 5 * segment + 17}) {
      const Way way = elements % 2 == 0 ? Way::kInto : n % 2 == 0 ? Way::kInPlace : Way::kReturned;
      expect_right(random_value(GetParam(), Shape{elements}, cpus(n), n), way);
    }
  }
}

// Large enough for all threads to take part; the same bits in every run.
TEST_P(Bits, SeveralMegabytes) {
  const auto elements = static_cast<std::int64_t>((std::size_t{3} << 20) / size_of(GetParam()) + 11);
  const PerReplica value = random_value(GetParam(), Shape{elements}, cpus(4), 77);
  const std::vector<std::byte> expected = simulated(ops_, ReduceOp::kSum, value, value);
  for (const Way way : testing::kAllWays) {
    for (int run = 0; run < 2; ++run) {
      const std::vector<PerReplica> results = testing::reduced(ops_, ReduceOp::kSum, {value}, way);
      ASSERT_TRUE(all_hold(results.at(0), expected)) << testing::name_of(way) << ", run " << run;
    }
  }
  const std::vector<std::byte> mean = simulated(ops_, ReduceOp::kMean, value, value);
  EXPECT_TRUE(all_hold(testing::reduced(ops_, ReduceOp::kMean, {value}, Way::kReturned).at(0), mean));
}

INSTANTIATE_TEST_SUITE_P(EveryType, Bits, ::testing::ValuesIn(testing::kSummable),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace onesum
