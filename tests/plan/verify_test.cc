#include "plan/verify.h"

#include <chrono>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/refusal.h"
#include "plan/sample_plans.h"
#include "plan/text.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

TEST(Verify, ProvesTheSamples) {
  for (const Plan& plan : sample::all()) EXPECT_EQ(refusal(plan), "accepted") << to_text(plan);
}

TEST(Verify, TellsTheOrderOfAdditions) {
  const sample::Types sum = sample::types_of(ReduceOp::kSum, DType::kFloat32);
  const sample::Types mean = sample::types_of(ReduceOp::kMean, DType::kFloat16);
  const PackProof direct = verify(sample::direct(3, mean)).packs[0];
  EXPECT_TRUE(direct.canonical);
  EXPECT_EQ(direct.expression, "float16(((r0 + r1) + r2) / 3)");
  const PackProof ring = verify(sample::ring(4, sum)).packs[0];
  EXPECT_FALSE(ring.canonical);
  EXPECT_EQ(ring.expression, "((r0 + r1) + r2) + r3");
  const PackProof integers =
      verify(sample::direct(2, sample::types_of(ReduceOp::kMean, DType::kInt64))).packs[0];
  EXPECT_EQ(integers.expression, "float64(r0 + r1) / 2");
  EXPECT_EQ(verify(sample::user_function(3, mean)).packs[0].expression, "float16(f(r0, r1, r2) / 3)");
  EXPECT_FALSE(verify(sample::user_function(3, mean)).packs[0].canonical);
  EXPECT_EQ(verify(sample::ring_gather(3, Element::kInt8)).packs[0].expression, "r0");
  const PackProof scatter = verify(sample::scatter(3, mean)).packs[0];
  EXPECT_TRUE(scatter.canonical);
  EXPECT_EQ(scatter.expression, "float16(((r0 + r1) + r2) / 3)");
  const std::string large = verify(sample::direct(64, sum)).packs[0].expression;
  EXPECT_LT(large.size(), 200u);
  EXPECT_THAT(large, ::testing::EndsWith("..."));
}

TEST(Verify, AcceptsEitherOrderOfTheOperandsOfAnAddition) {
  std::string text = to_text(sample::one_device(3, {}, false));
  text.replace(text.find("(b0 + b1) + b2"), 14, "b2 + (b1 + b0)");
  EXPECT_TRUE(verify(parse_text(text)).packs[0].canonical);
}

TEST(Verify, TakesThousandsOfStepsOf64Ranks) {
  for (const Plan& plan :
       {sample::ring(64, {}), sample::direct(64, {}), sample::halving_doubling(64, {}, true)}) {
    std::size_t steps = 0;
    for (const Lane& lane : plan.lanes) steps += lane.steps.size();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(refusal(plan), "accepted");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::cout << plan.algorithm << ": " << steps << " steps verified in " << seconds.count() * 1e3 << " ms\n";
    EXPECT_LT(seconds.count(), 20);
  }
}

// A ring that forwards what it receives without letting go of it first needs a second slot somewhere.
TEST(Verify, FindsTheDeadlockOfARingWithOneChannel) {
  const std::string text = R"(plan ring
order ring
devices 0 1
p0 reduce float32 to float32; split ragged 2; replicas 0 1; destinations
c0 0 -> 1
c1 1 -> 0
b0 input 0 of p0 on 0 float32
b1 input 1 of p0 on 1 float32
b2 slot c0 of p0 on 0 float32
b3 view c0 of p0 on 1 float32
b4 slot c1 of p0 on 1 float32
b5 view c1 of p0 on 0 float32
lane of rank 0
  copy on 0: b2[0] = b0[0]
  recv c1: b5[1]
  reduce on 0 in float32: b2[1] = b5[1] + b0[1]
  release c1
  recv c1: b5[0]
  release c1
lane of rank 1
  copy on 1: b4[1] = b1[1]
  recv c0: b3[0]
  reduce on 1 in float32: b4[0] = b3[0] + b1[0]
  release c0
  recv c0: b3[1]
  release c0
)";
  const std::string message = refusal(parse_text(text));
  EXPECT_THAT(
      message,
      HasSubstr("deadlock: lane 0 step 2 (reduce on 0 in float32: b2[1] = b5[1] + b0[1]) waits for the "
                "slot of channel 0, which holds the message that lane 1 step 1 (recv c0: b3[0]) received; "
                "lane 1 step 3 (release c0) is to release it. lane 1 step 2"));
}

TEST(Verify, RefusesPlansThatAreTooLarge) {
  Plan plan = sample::one_device(2, {}, false);
  plan.lanes.resize((std::size_t{1} << 20) + 1);
  EXPECT_THAT(refusal(plan), HasSubstr("1048577 lanes"));
}

}  // namespace
}  // namespace onesum::plan
