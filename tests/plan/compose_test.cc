#include "plan/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/numbers.h"
#include "plan/sample_plans.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::plan {
namespace {

const sample::Types kSum = sample::types_of(ReduceOp::kSum, DType::kFloat32);
const sample::Types kMean = sample::types_of(ReduceOp::kMean, DType::kFloat16);

std::vector<Plan> parts() {
  return {sample::ring(4, kSum),
          sample::direct(4, kMean),
          sample::halving_doubling(4, kMean, true),
          sample::direct(4, sample::types_of(ReduceOp::kMean, DType::kInt64)),
          sample::ring_gather(4, Element::kInt8),
          sample::ring(4, kMean)};
}

void expect_right(const Plan& plan) {
  EXPECT_EQ(parse_text(to_text(plan)), plan);
  const Proof proof = verify(plan);
  EXPECT_EQ(numbers::check(plan, numbers::make(plan, proof, 5), 5, 6), "") << to_text(plan);
}

TEST(SideBySide, IsProvedAndRight) {
  for (const LaneUse lanes : {LaneUse::kShared, LaneUse::kSeparate}) {
    const Plan plan = side_by_side(parts(), lanes);
    EXPECT_EQ(plan.packs.size(), 6u);
    EXPECT_EQ(plan.lanes.size(), lanes == LaneUse::kShared ? 4u : 24u);
    expect_right(plan);
    const Proof proof = verify(plan);
    EXPECT_FALSE(proof.packs[0].canonical);
    EXPECT_TRUE(proof.packs[1].canonical);
    EXPECT_FALSE(proof.packs[5].canonical);
  }
}

TEST(SideBySide, KeepsTheOrderOfSharedLanes) {
  const std::vector<Plan> plans = {sample::two_lanes(kSum), sample::one_device(4, kMean, true),
                                   sample::two_lanes(kMean)};
  const Plan plan = side_by_side(plans);
  ASSERT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(plan.lanes[0].steps.size(), 3u + 1u + 3u);
  EXPECT_EQ(plan.lanes[1].steps.size(), 2u);
  const Step& wait = plan.lanes[0].steps[5];
  EXPECT_EQ(wait.op, Op::kWait);
  EXPECT_EQ(wait.lane, 1);
  EXPECT_EQ(wait.step, 1);  // the second plan's has moved
  expect_right(plan);
}

TEST(SideBySide, OfOnePlanIsThatPlan) {
  for (const Plan& plan : sample::all()) EXPECT_EQ(side_by_side({&plan, 1}), plan);
}

TEST(SideBySide, NamesWhatItIsMadeOf) {
  const Plan plan = side_by_side(parts());
  EXPECT_EQ(plan.algorithm, "ring + direct + halving_doubling + ring_gather");
  EXPECT_EQ(plan.order, "ring + canonical");
  const std::vector<Plan> same = {sample::direct(3, kSum), sample::direct(3, kMean)};
  EXPECT_EQ(side_by_side(same).algorithm, "direct");
  EXPECT_EQ(side_by_side(same).order, "canonical");
}

TEST(SideBySide, RefusesOtherDevices) {
  EXPECT_THROW(side_by_side(std::span<const Plan>()), Error);
  const std::vector<Plan> other = {sample::direct(3, kSum), sample::direct(4, kSum)};
  EXPECT_THROW(side_by_side(other), Error);
}

TEST(InSequence, IsProvedAndRight) {
  expect_right(in_sequence(parts()));
  const std::vector<Plan> plans = {sample::two_lanes(kSum), sample::one_device(4, kMean, true),
                                   sample::two_lanes(kMean)};
  expect_right(in_sequence(plans));
}

TEST(InSequence, EveryLaneWaitsForThePlanBefore) {
  const std::vector<Plan> plans = {sample::two_lanes(kSum), sample::two_lanes(kSum)};
  const Plan plan = in_sequence(plans);
  EXPECT_THAT(to_text(plan), ::testing::HasSubstr("lane of rank 0\n"
                                                  "  reduce on 0 in float32: b4 = b0 + b1\n"
                                                  "  wait lane 1 step 0\n"
                                                  "  reduce on 0 in float32: b0 b1 b2 b3 = b4 + b5\n"
                                                  "  wait lane 1 step 0\n"
                                                  "  reduce on 0 in float32: b10 = b6 + b7\n"
                                                  "  wait lane 1 step 2\n"
                                                  "  reduce on 0 in float32: b6 b7 b8 b9 = b10 + b11\n"
                                                  "lane of rank 0\n"
                                                  "  reduce on 2 in float32: b5 = b2 + b3\n"
                                                  "  wait lane 0 step 2\n"
                                                  "  reduce on 2 in float32: b11 = b8 + b9\n"));
}

}  // namespace
}  // namespace onesum::plan
