#include "plan/cost.h"

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/sample_plans.h"

namespace onesum::plan {
namespace {

const sample::Types kSum = sample::types_of(ReduceOp::kSum, DType::kFloat32);

CostConstants memory_only(double gamma) { return {{0, 0}, {0, 0}, gamma, 1, 0}; }
CostConstants latency_only(std::size_t slots) { return {{0, 0}, {1, 0}, 0, slots, 0}; }

TEST(Cost, OfOneDeviceIsOnePass) {
  const Cost c = cost(sample::one_device(4, kSum, false), {{1000}, {}}, memory_only(1e-9));
  EXPECT_EQ(c.steps, 1u);
  EXPECT_EQ(c.longest_chain, 1u);
  EXPECT_EQ(c.messages, 0u);
  EXPECT_EQ(c.devices[0].bytes_read, 16000u);
  EXPECT_EQ(c.devices[0].bytes_written, 16000u);
  EXPECT_EQ(c.devices[1].bytes_read, 0u);
  EXPECT_EQ(c.total.additions, 3000u);
  EXPECT_DOUBLE_EQ(c.seconds, 32000e-9);
}

TEST(Cost, OfNextToNothingIsThatOfTheStep) {
  EXPECT_DOUBLE_EQ(cost(sample::one_device(2, kSum, true), {{0}, {}}, {{}, {}, 1, 1, 5}).seconds, 5);
}

// The textbook: each rank sends 2 (n-1)/n of the bytes, in 2 (n-1) messages.
TEST(Cost, OfARingIsTheTextbooks) {
  for (const std::int32_t n : {2, 4, 8}) {
    const auto ranks = static_cast<std::uint64_t>(n);
    const std::size_t length = 1000 * ranks;
    const Cost c = cost(sample::ring(n, kSum), {{length}, {}});
    EXPECT_EQ(c.messages, 2 * ranks * (ranks - 1));
    EXPECT_EQ(c.longest_chain, 2 * ranks - 1);
    for (const DeviceCost& device : c.devices) {
      EXPECT_EQ(device.bytes_sent, 2 * (ranks - 1) * length / ranks * 4);
      EXPECT_EQ(device.additions, (ranks - 1) * length / ranks);
    }
    EXPECT_EQ(c.total.bytes_sent, ranks * c.devices[0].bytes_sent);
  }
}

TEST(Cost, CountsMessagesInTheChain) {
  // Chunk 0 passes ranks 0, 1, 2; alpha is all that takes time.
  const Cost c = cost(sample::chain_broadcast(3, Element::kFloat32), {{100}, {}}, latency_only(2));
  EXPECT_EQ(c.longest_chain, 4u);
  EXPECT_DOUBLE_EQ(c.seconds, 2);
  // One slot: the second message waits until the first is released, one alpha later.
  EXPECT_DOUBLE_EQ(cost(sample::chain_broadcast(3, Element::kFloat32), {{100}, {}}, latency_only(1)).seconds,
                   3);
}

TEST(Cost, PrefersFewMessagesForSmallAndFewBytesForLargeSizes) {
  const Plan ring = sample::ring(8, kSum);
  const Plan doubling = sample::halving_doubling(8, kSum);
  EXPECT_LT(cost(doubling, {{8}, {}}).seconds, cost(ring, {{8}, {}}).seconds);
  EXPECT_LT(cost(doubling, {{8}, {}}).seconds, cost(doubling, {{8000000}, {}}).seconds);
}

TEST(Cost, RunsOneStepOfARankAtATime) {
  const Cost c = cost(sample::two_lanes(kSum), {{1000}, {}}, memory_only(1e-9));
  EXPECT_DOUBLE_EQ(c.seconds, (12000 + 12000 + 24000) * 1e-9);
  EXPECT_EQ(c.longest_chain, 2u);
}

TEST(Cost, TakesCountsKnownAtRunTime) {
  const Cost c = cost(sample::ring_gather(3, Element::kFloat32), {{0}, {{1, 0, 5}}});
  EXPECT_EQ(c.total.bytes_sent, 2u * 6u * 4u);
}

TEST(Cost, RefusesPlansThatDoNotEnd) {
  Plan plan = sample::ring(3, kSum);
  plan.lanes[0].steps.clear();
  lay_out_operands(plan);
  EXPECT_THROW(cost(plan, {{9}, {}}), Error);
}

}  // namespace
}  // namespace onesum::plan
