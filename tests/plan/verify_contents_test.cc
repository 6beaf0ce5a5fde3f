// Results that do not hold what they should, and shares that are not shared out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/broken_plans.h"
#include "plan/plan_texts.h"

namespace onesum::plan {

std::vector<Broken> broken_contents() {
  return {
      {"double contribution",
       kPair,
       "(b0 + b7) / 2",
       "(b0 + b0) / 2",
       {"b2 chunk 0, written by lane 0 step 2 (reduce on 0 in float32: b2 = (b0 + b0) / 2), holds replica 0 "
        "more than once: (r0 + r0) / 2"}},
      {"missing contribution",
       kPair,
       "b2 = (b0 + b7) / 2",
       "b2 = b7 / 2",
       {"b2 chunk 0, written by lane 0 step 2 (reduce on 0 in float32: b2 = b7 / 2), lacks replica 0"}},
      {"missing divisor",
       kPair,
       "(b0 + b7) / 2",
       "b0 + b7",
       {"written by lane 0 step 2 (reduce on 0 in float32: b2 = b0 + b7), is divided by 1, expected 2"}},
      {"wrong divisor", kPair, "(b0 + b7) / 2", "(b0 + b7) / 4", {"is divided by 4, expected 2"}},
      {"divided twice",
       kPair,
       "  release c1\n",
       "  reduce on 0 in float32: b2 = b2 / 2\n  release c1\n",
       {"written by lane 0 step 3 (reduce on 0 in float32: b2 = b2 / 2), is divided inside the sum: it holds "
        "(r0 + r1) / 2 / 2"}},
      {"divided before the sum",
       kPair,
       "  copy on 0: b4 = b0",
       "  reduce on 0 in float32: b4 = b0 / 2",
       {"b3 chunk 0, written by lane 1 step 2 (reduce on 1 in float32: b3 = (b5 + b1) / 2), is divided "
        "inside the sum: it holds (r0 / 2 + r1) / 2"}},
      {"output never written",
       kPair,
       "  reduce on 0 in float32: b2 = (b0 + b7) / 2\n",
       "",
       {"no step writes b2 chunk 0, its destination 0"}},
      {"one chunk never written",
       kInPlace,
       "  copy on 3: b0[1] b1[1] b2[1] = b3[1]",
       "  copy on 3: b0[1] b1[1] = b3[1]",
       {"b2 chunk 1, written by nobody, lacks replica 0: it holds r2"}},
      {"output without a buffer",
       text_of::half(),
       "destinations 0 1 2 3",
       "destinations 0 1 2 3 3",
       {"b3 replaces 2 destinations on device 3"}},
      {"destination without a buffer",
       kPair,
       "destinations 0 1",
       "destinations 0 1 1",
       {"no buffer is its destination 2"}},
      {"rounded partial sum",
       text_of::half(),
       "b5 temp 1 of p0 on 2 float32",
       "b5 temp 1 of p0 on 2 float16",
       {"b0 chunk 0, written by lane 0 step 2",
        "holds (r0 + r1) + float16(r2 + r3), the plan claims canonical order, which is (r0 + r1) + (r2 + "
        "r3)"}},
      {"other order claimed canonical",
       kInPlace,
       "(b0[1] + b1[1]) + b2[1]",
       "b0[1] + (b1[1] + b2[1])",
       {"b0 chunk 1, written by lane 1 step 1 (copy on 3: b0[1] b1[1] b2[1] = b3[1]), holds r0 + (r1 + r2), "
        "the plan claims canonical order, which is (r0 + r1) + r2"}},
      {"ring claimed canonical",
       text_of::ring(),
       "order ring",
       "order canonical",
       {"the plan claims canonical order, which is (r0 + r1) + (r2 + r3)"}},
      {"other bits on another device",
       "plan differ\norder any\ndevices 0 0 0\np0 reduce float32 to float32; replicas 0 1 2; destinations 0 "
       "1\nb0 input 0 of p0 on 0 float32\nb1 input 1 of p0 on 1 float32\nb2 input 2 of p0 on 2 float32\nb3 "
       "output 0 of p0 on 0 float32\nb4 output 1 of p0 on 1 float32\nlane of rank 0\n  reduce on 0 in "
       "float32: b3 = (b0 + b1) + b2\n  reduce on 1 in float32: b4 = b0 + b1\n",
       "b4 = b0 + b1",
       "b4 = b0 + (b1 + b2)",
       {"b4 chunk 0, written by lane 0 step 1",
        "holds r0 + (r1 + r2), but pack 0: b3 chunk 0, written by lane 0 step 0", "same bits"}},
      {"uninitialised read",
       kInPlace,
       "  reduce on 3 in float32: b3[1] = (b0[1] + b1[1]) + b2[1]\n",
       "",
       {"lane 1 step 0 (copy on 3: b0[1] b1[1] b2[1] = b3[1]) reads b3 chunk 1, which nobody wrote before"}},
      {"rows never sent on",
       text_of::gather(),
       "  copy on 1: b5[2] = b7[2]\n",
       "",
       {"no step writes b5 chunk 2, its destination 1"}},
      {"function uses a replica twice",
       text_of::function(),
       "f(b0, b1)",
       "f(b0, b0)",
       {"holds replica 0 more than once: f(r0, r0)"}},
      {"function claimed canonical",
       text_of::function(),
       "order accumulation_fn",
       "order canonical",
       {"holds f(r0, r1), the plan claims canonical order"}},
  };
}

std::vector<Broken> broken_halves() {
  return {
      {"share of no destination",
       text_of::scatter(),
       "split ragged 6",
       "split ragged 7",
       {"pack 0: chunk 6 belongs to no destination"}},
      {"share without a replica",
       text_of::scatter(),
       "reduce on 0 in float32: b3 = (b0[0..1] + b7[0..1]) + b9[0..1]",
       "reduce on 0 in float32: b3 = b0[0..1] + b7[0..1]",
       {"b3 chunk 0, written by lane 0 step 4", "lacks replica 2"}},
      {"share of two replicas",
       text_of::all_gather(),
       "input 0 of p0 on 0 float32 [0..1]",
       "input 0 of p0 on 0 float32 [0..2]",
       {"pack 0: chunk 2 belongs to replica 0 and to replica 1, expected one of them"}},
      {"share of no replica",
       text_of::all_gather(),
       "split ragged 6",
       "split ragged 7",
       {"pack 0: chunk 6 belongs to no replica"}},
      {"share not gathered",
       text_of::all_gather(),
       "  copy on 1: b5[4..5] = b7[4..5]\n",
       "",
       {"no step writes b5 chunk 4, its destination 1"}},
  };
}

namespace {

using ::testing::HasSubstr;

TEST(VerifyContracts, RefusesAShareOfTwoDestinations) {
  Plan plan = sample::scatter(3, {});
  for (Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::kOutput && buffer.index == 1) ++buffer.window.count;
  }
  EXPECT_THAT(
      refusal(plan),
      HasSubstr("pack 0: chunk 4 belongs to destination 1 and to destination 2, expected one of them"));
}

}  // namespace

}  // namespace onesum::plan
