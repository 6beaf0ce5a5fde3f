// Plans of what is no sum: their text, what verify makes of them, and what they give.
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/expressions.h"
#include "plan/refusal.h"
#include "plan/sample_plans.h"
#include "plan/simulate.h"
#include "plan/step_label.h"
#include "plan/text.h"
#include "plan/well_formed.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

constexpr Combine kOthers[] = {Combine::kProduct, Combine::kMin,   Combine::kMax,
                               Combine::kBitAnd,  Combine::kBitOr, Combine::kBitXor};

// A plan of sums as one of something else.
Plan by(Combine combine, Plan plan) {
  for (Pack& pack : plan.packs) pack.combine = combine;
  for (Lane& lane : plan.lanes) {
    for (Step& step : lane.steps) {
      if (step.op == Op::kReduce && step.num_sources > 1) step.combine = combine;
    }
  }
  return plan;
}

sample::Types integers() { return sample::types_of(ReduceOp::kSum, DType::kInt32); }

// All-reduces of integers, whichever operation it is.
std::vector<Plan> all_reduces(Combine combine) {
  std::vector<Plan> plans;
  for (const Plan& plan :
       {sample::one_device(5, integers(), false), sample::one_device_over_temp(3, integers()),
        sample::two_lanes(integers()), sample::ring(4, integers()), sample::halving_doubling(4, integers()),
        sample::direct(3, integers()), sample::scatter(3, integers())}) {
    plans.push_back(by(combine, plan));
  }
  return plans;
}

TEST(Operations, TextNamesTheOperationAndParsesBack) {
  EXPECT_EQ(to_text(by(Combine::kMin, sample::two_lanes(integers()))),
            "plan two_lanes\n"
            "order canonical\n"
            "devices 0 0 0 0\n"
            "p0 reduce by min int32 to int32; replicas 0 1 2 3; destinations 0 1 2 3\n"
            "b0 inout 0 of p0 on 0 int32\n"
            "b1 inout 1 of p0 on 1 int32\n"
            "b2 inout 2 of p0 on 2 int32\n"
            "b3 inout 3 of p0 on 3 int32\n"
            "b4 temp 0 of p0 on 0 int32\n"
            "b5 temp 1 of p0 on 2 int32\n"
            "lane of rank 0\n"
            "  reduce on 0 in int32: b4 = b0 min b1\n"
            "  wait lane 1 step 0\n"
            "  reduce on 0 in int32: b0 b1 b2 b3 = b4 min b5\n"
            "lane of rank 0\n"
            "  reduce on 2 in int32: b5 = b2 min b3\n");
  for (const Combine combine : kOthers) {
    for (const Plan& plan : all_reduces(combine)) EXPECT_EQ(parse_text(to_text(plan)), plan);
  }
  EXPECT_THAT(to_text(by(Combine::kBitXor, sample::one_device(5, integers(), false))),
              HasSubstr("= ((b0 bitxor b1) bitxor (b2 bitxor b3)) bitxor b4\n"));
}

std::string parse_error(const std::string& text) {
  try {
    parse_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "parsed";
}

TEST(Operations, TextThatMixesOrInventsThemIsRefused) {
  const std::string text = to_text(by(Combine::kMin, sample::one_device(3, integers(), false)));
  const auto with = [&](const std::string& old, const std::string& replaced) {
    std::string changed = text;
    return changed.replace(changed.find(old), old.size(), replaced);
  };
  EXPECT_EQ(parse_error(text), "parsed");
  EXPECT_THAT(parse_error(with("(b0 min b1) min b2", "(b0 min b1) max b2")),
              HasSubstr("found \"max\", expected \"min\""));
  EXPECT_THAT(parse_error(with("(b0 min b1) min b2", "(b0 + b1) min b2")),
              HasSubstr("found \"min\", expected \"+\""));
  EXPECT_THAT(parse_error(with("(b0 min b1)", "(b0 least b1)")), HasSubstr("expected \"+\""));
  EXPECT_THAT(parse_error(with("by min", "by mean")), HasSubstr("expected product, min, max"));
  EXPECT_THAT(parse_error(with("by min", "by sum")), HasSubstr("expected product, min, max"));
  EXPECT_THAT(parse_error(with("reduce by min", "concatenate by min")), HasSubstr("combines nothing"));
}

TEST(Operations, AreProved) {
  for (const Combine combine : kOthers) {
    for (const Plan& plan : all_reduces(combine)) EXPECT_EQ(refusal(plan), "accepted") << to_text(plan);
  }
  const Proof proof = verify(by(Combine::kMax, sample::direct(3, integers())));
  EXPECT_EQ(proof.packs[0].expression, "(r0 max r1) max r2");
  EXPECT_TRUE(proof.packs[0].canonical);
  EXPECT_FALSE(verify(by(Combine::kMax, sample::ring(4, integers()))).packs[0].canonical);
}

// Of every plan, every step that combines, turned into something else.
TEST(Operations, AWrongOneInAnyStepIsRefused) {
  std::size_t tried = 0;
  for (const Combine combine : {Combine::kSum, Combine::kMin, Combine::kBitOr}) {
    for (const Plan& plan : all_reduces(combine)) {
      for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) {
        for (std::size_t i = 0; i < plan.lanes[lane].steps.size(); ++i) {
          Plan wrong = plan;
          Step& step = wrong.lanes[lane].steps[i];
          if (step.op != Op::kReduce || step.num_sources < 2) continue;
          step.combine = combine == Combine::kProduct ? Combine::kMax : Combine::kProduct;
          EXPECT_THAT(refusal(wrong), HasSubstr("combines by product, pack 0 by"));
          ++tried;
        }
      }
      Plan wrong = plan;
      wrong.packs[0].combine = Combine::kMax;
      EXPECT_THAT(refusal(wrong), HasSubstr("pack 0 by max"));
    }
  }
  EXPECT_GT(tried, 50U);
}

TEST(Operations, AreDifferentExpressions) {
  Expressions expressions;
  const Expression a = expressions.replica(0, Element::kInt32);
  const Expression b = expressions.replica(1, Element::kInt32);
  EXPECT_EQ(expressions.combine(a, b, Combine::kMin, Element::kInt32),
            expressions.combine(b, a, Combine::kMin, Element::kInt32));
  EXPECT_NE(expressions.combine(a, b, Combine::kMin, Element::kInt32),
            expressions.combine(a, b, Combine::kMax, Element::kInt32));
  EXPECT_NE(expressions.canonical(2, Element::kInt32, Combine::kSum, Element::kInt32),
            expressions.canonical(2, Element::kInt32, Combine::kProduct, Element::kInt32));
}

TEST(Operations, TypesThatHaveThemNotAreRefused) {
  const auto of = [](DType dtype) {
    return sample::one_device(3, sample::types_of(ReduceOp::kSum, dtype), false);
  };
  EXPECT_THAT(refusal(by(Combine::kBitAnd, of(DType::kFloat32))), HasSubstr("pack 0: float32 has no bitand"));
  EXPECT_THAT(refusal(by(Combine::kMin, of(DType::kComplex64))), HasSubstr("pack 0: complex64 has no min"));
  EXPECT_EQ(refusal(by(Combine::kProduct, of(DType::kComplex64))), "accepted");
  Plan divided = by(Combine::kMax, of(DType::kFloat32));
  divided.packs[0].divisor = 3;
  EXPECT_THAT(refusal(divided), HasSubstr("pack 0: a max is divided by 3, expected a sum"));
  Plan of_bool = by(Combine::kMax, of(DType::kUInt8));
  of_bool.packs[0].accumulator = of_bool.packs[0].output = Element::kBool;
  for (Buffer& buffer : of_bool.buffers) buffer.element = Element::kBool;
  for (Step& step : of_bool.lanes[0].steps) step.accumulator = Element::kBool;
  EXPECT_EQ(refusal(of_bool), "accepted");
  EXPECT_THAT(refusal(by(Combine::kSum, of_bool)), HasSubstr("bool has no sum"));
}

TEST(Operations, FunctionsTakeThePlaceOfSumsOnly) {
  const Plan plan = sample::user_function(3, sample::types_of(ReduceOp::kSum, DType::kFloat32));
  EXPECT_EQ(refusal(plan), "accepted");
  EXPECT_THAT(refusal(by(Combine::kMin, plan)), HasSubstr("a function in the place of a min"));
}

TEST(Operations, StepsWithNothingToCombineHaveNone) {
  Plan plan = by(Combine::kMin, sample::one_device(1, integers(), false));
  plan.lanes[0].steps[0].combine = Combine::kMin;
  EXPECT_THAT(refusal(plan), HasSubstr("combines by min where there is nothing to combine"));
  plan.lanes[0].steps[0].combine = static_cast<Combine>(99);
  EXPECT_THAT(refusal(plan), HasSubstr("unknown way to combine"));
  plan = sample::one_device(2, integers(), false);
  plan.packs[0].combine = static_cast<Combine>(99);
  EXPECT_THAT(refusal(plan), HasSubstr("unknown operation"));
}

TEST(Operations, LabelsSayWhichItIs) {
  const Plan plan = by(Combine::kMin, sample::one_device(5, integers(), false));
  EXPECT_THAT(step_label(plan, {0, 0}, 200).formula, HasSubstr("(in min in1) min"));
  EXPECT_THAT(step_label(plan, {0, 0}, 10).formula, HasSubstr("min of 5"));
}

TEST(Operations, GiveWhatTheyShould) {
  const std::vector<std::vector<std::int32_t>> replicas = {{12, -7, 0x55}, {10, 5, 0x0F}, {-6, 3, 0x3C}};
  const auto result_of = [&](Combine combine) {
    BytesOfPacks inputs(1);
    for (const std::vector<std::int32_t>& replica : replicas) {
      const auto bytes = std::as_bytes(std::span(replica));
      inputs[0].emplace_back(bytes.begin(), bytes.end());
    }
    const BytesOfPacks results =
        simulate(by(combine, sample::direct(3, integers())), {{3}, {{}}}, inputs, {});
    std::vector<std::int32_t> values(3);
    std::memcpy(values.data(), results[0][1].data(), results[0][1].size());
    return values;
  };
  using Values = std::vector<std::int32_t>;
  EXPECT_EQ(result_of(Combine::kProduct), (Values{-720, -105, 0x55 * 0x0F * 0x3C}));
  EXPECT_EQ(result_of(Combine::kMin), (Values{-6, -7, 0x0F}));
  EXPECT_EQ(result_of(Combine::kMax), (Values{12, 5, 0x55}));
  EXPECT_EQ(result_of(Combine::kBitAnd), (Values{8, 1, 0x04}));
  EXPECT_EQ(result_of(Combine::kBitOr), (Values{-2, -1, 0x7F}));
  EXPECT_EQ(result_of(Combine::kBitXor), (Values{12 ^ 10 ^ -6, -7 ^ 5 ^ 3, 0x55 ^ 0x0F ^ 0x3C}));
}

}  // namespace
}  // namespace onesum::plan
