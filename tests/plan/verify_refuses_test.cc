// A table of broken plans, each with what verify says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/compose.h"
#include "plan/plan_texts.h"
#include "plan/refusal.h"
#include "plan/sample_plans.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

// The same of a text in which something is replaced.
std::string refusal(std::string text, const std::string& find, const std::string& replace) {
  const std::size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find << " in\n" << text;
  if (at == std::string::npos) return "";
  text.replace(at, find.size(), replace);
  try {
    return refusal(parse_text(text));
  } catch (const Error& error) {
    return error.what();
  }
}

// One worker, four replicas in float16, in two lanes.
std::string half() { return to_text(sample::two_lanes(sample::types_of(ReduceOp::kMean, DType::kFloat16))); }
std::string ring() { return to_text(sample::ring(4, sample::types_of(ReduceOp::kMean, DType::kFloat32))); }
std::string direct() { return to_text(sample::direct(3, sample::types_of(ReduceOp::kSum, DType::kFloat32))); }
std::string gather() { return to_text(sample::ring_gather(3, Element::kFloat32)); }
std::string scatter() {
  return to_text(sample::scatter(3, sample::types_of(ReduceOp::kSum, DType::kFloat32)));
}
std::string all_gather() { return to_text(sample::ring_all_gather(3, Element::kFloat32)); }
std::string integers() {
  return to_text(sample::one_device_over_temp(3, sample::types_of(ReduceOp::kMean, DType::kInt32)));
}
std::string function() {
  return to_text(sample::user_function(2, sample::types_of(ReduceOp::kSum, DType::kFloat32)));
}

struct Broken {
  std::string name;
  std::string text;
  std::string find;
  std::string replace;
  std::vector<std::string> fragments;  // of the message
};

std::vector<Broken> broken_channels() {
  return {
      {"missing receive",
       kPair,
       "  recv c0: b5\n",
       "",
       {"lane 1 step 1 (reduce on 1 in float32: b3 = (b5 + b1) / 2) reads the view b5",
        "nothing was received on channel 0"}},
      {"nobody receives",
       kPair,
       "  recv c0: b5\n  reduce on 1 in float32: b3 = (b5 + b1) / 2\n  release c0\n",
       "",
       {"lane 0 step 0 (copy on 0: b4 = b0) sends a message on channel 0 that nobody receives"}},
      {"nobody sends",
       kPair,
       "  copy on 0: b4 = b0\n",
       "",
       {"deadlock: lane 1 step 1 (recv c0: b5) waits for a message on channel 0; no step is left to send "
        "it"}},
      {"missing release",
       kPair,
       "  release c0\n",
       "",
       {"lane 1 step 1 (recv c0: b5) receives a message on channel 0 that nobody releases"}},
      {"double release",
       kPair,
       "  release c0\n",
       "  release c0\n  release c0\n",
       {"lane 1 step 4 (release c0): nothing is received on channel 0",
        "lane 1 step 3 (release c0) released the last message"}},
      {"release before receive",
       kPair,
       "  recv c0: b5\n",
       "  release c0\n",
       {"lane 1 step 1 (release c0): nothing is received on channel 0"}},
      {"read after release",
       kPair,
       "  reduce on 1 in float32: b3 = (b5 + b1) / 2\n  release c0\n",
       "  release c0\n  reduce on 1 in float32: b3 = (b5 + b1) / 2\n",
       {"lane 1 step 3 (reduce on 1 in float32: b3 = (b5 + b1) / 2) reads the view b5, but lane 1 step 2 "
        "(release c0) released it"}},
      {"received twice",
       kPair,
       "  recv c0: b5\n",
       "  recv c0: b5\n  recv c0: b5\n",
       {"deadlock: lane 1 step 2 (recv c0: b5) waits for the slot of channel 0, which holds the message that "
        "lane 1 step 1 (recv c0: b5) received; lane 1 step 4 (release c0) is to release it"}},
      {"sent twice, received once",
       kPair,
       "  copy on 0: b4 = b0\n",
       "  copy on 0: b4 = b0\n  copy on 0: b4 = b0\n",
       {"lane 0 step 1 (copy on 0: b4 = b0) sends a message on channel 0 that nobody receives"}},
      {"view of another channel",
       ring(),
       "  recv c6: ",
       "  recv c0: ",
       {"lane 0 step 1 (recv): b9 is no view of channel 0"}},
      {"swapped peer",
       direct(),
       "b6[1] = b0[1]",
       "b7[1] = b0[1]",
       {"lane 2 step 2 (recv c2: b24[2]) expects chunk 2 of pack 0 in float32, but lane 0 step 0 (copy on 0: "
        "b7[1] = b0[1]) sent chunk 1 of pack 0 in float32"}},
      {"wrong chunk sent",
       ring(),
       "b8[0] = b0[0]",
       "b8[1] = b0[1]",
       {"expects chunk 0 of pack 0 in float32, but lane 0 step 0", "sent chunk 1 of pack 0 in float32"}},
      {"two sends with one slot, each before its receive",
       kPair,
       "  copy on 0: b4 = b0\n  recv c1: b7\n",
       "  copy on 0: b4 = b0\n  copy on 0: b4 = b0\n  recv c1: b7\n",
       {"lane 0 step 1"}},
      {"view of another rank",
       kPair,
       "b2 = (b0 + b7) / 2",
       "b2 = (b0 + b5) / 2",
       {"lane 0 step 2", "b5 belongs to rank 1, the lane to rank 0"}},
  };
}

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
       half(),
       "destinations 0 1 2 3",
       "destinations 0 1 2 3 3",
       {"b3 replaces 2 destinations on device 3"}},
      {"destination without a buffer",
       kPair,
       "destinations 0 1",
       "destinations 0 1 1",
       {"no buffer is its destination 2"}},
      {"rounded partial sum",
       half(),
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
       ring(),
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
       gather(),
       "  copy on 1: b5[2] = b7[2]\n",
       "",
       {"no step writes b5 chunk 2, its destination 1"}},
      {"function uses a replica twice",
       function(),
       "f(b0, b1)",
       "f(b0, b0)",
       {"holds replica 0 more than once: f(r0, r0)"}},
      {"function claimed canonical",
       function(),
       "order accumulation_fn",
       "order canonical",
       {"holds f(r0, r1), the plan claims canonical order"}},
  };
}

std::vector<Broken> broken_order() {
  return {
      {"race between lanes",
       half(),
       "  wait lane 1 step 0\n",
       "",
       {"lane 1 step 0 (reduce on 2 in float32: b5 = b2 + b3) reads b2 chunk 0, which lane 0 step 1 (reduce "
        "on 0",
        "writes, and nothing orders them"}},
      {"race in place",
       kInPlace,
       "b0[0] b1[0] b2[0] = (b0[0] + b1[0]) + b2[0]",
       "b0 b1 b2 = (b0 + b1) + b2",
       {"lane 1 step 0 (reduce on 3 in float32: b3[1] = (b0[1] + b1[1]) + b2[1]) reads b0 chunk 1, which "
        "lane 0 step 0 (reduce on 0 in float32: b0 b1 b2 = (b0 + b1) + b2) writes, and nothing orders them"}},
      {"result overwritten by another lane",
       kInPlace,
       "b3[1] = (b0[1]",
       "b3[1] b0[0] = (b0[1]",
       {"different runs of chunks"}},
      {"two lanes send",
       kPair,
       "  release c0\n",
       "  release c0\n  recv c0: b5\n  release c0\nlane of rank 0\n  copy on 0: b4 = b0\n",
       {"lane 0 step 0 (copy on 0: b4 = b0) and lane 2 step 0 (copy on 0: b4 = b0) both send on channel 0, "
        "and nothing orders them"}},
      {"release by another lane, unordered",
       kPair,
       "b3 = (b5 + b1) / 2\n  release c0\n",
       "b3 = (b5 + b1) / 2\nlane of rank 1\n  wait lane 1 step 1\n  release c0\n",
       {"lane 2 step 1 (release c0) releases the view of channel 0, which lane 1 step 2 (reduce on 1 in "
        "float32: b3 = "
        "(b5 + b1) / 2) reads, and nothing orders them"}},
      {"two lanes receive",
       kTwoViews,
       "  wait lane 1 step 3\n",
       "",
       {"lane 1 step 3 (release c0) and lane 2 step 0 (recv c0: b8)",
        "both receive or release on channel 0, and nothing orders them"}},
      {"deadlock of waits",
       kInPlace,
       "  copy on 3",
       "  wait lane 1 step 2\n  copy on 3",
       {"deadlock: lane 1 step 1 (wait lane 1 step 2) waits for itself or a later step of its own lane"}},
      {"lanes wait for each other",
       half(),
       "  reduce on 2 in float32: b5 = b2 + b3\n",
       "  wait lane 0 step 2\n  reduce on 2 in float32: b5 = b2 + b3\n",
       {"deadlock: lane 0 step 1 (wait lane 1 step 0) waits for lane 1 step 0 (wait lane 0 step 2)",
        "lane 1 step 0 (wait lane 0 step 2) waits for lane 0 step 2 (reduce on 0"}},
      {"wait for another rank",
       kPair,
       "  recv c1: b7\n",
       "  wait lane 1 step 0\n  recv c1: b7\n",
       {"lane 0 step 1 (wait lane 1 step 0), of rank 0, waits for lane 1 step 0 (copy on 1: b6 = b1), which "
        "is of rank 1"}},
  };
}

std::vector<Broken> broken_rules() {
  return {
      {"write to an input",
       kPair,
       "  recv c1: b7\n",
       "  recv c1: b7\n  copy on 0: b0 = b7\n",
       {"lane 0 step 2 (copy on 0: b0 = b7): writes b0, which is an input"}},
      {"write to a view",
       kPair,
       "  recv c1: b7\n",
       "  recv c1: b7\n  copy on 0: b7 = b0\n",
       {"writes b7, which is a view"}},
      {"read of a slot", kPair, "b2 = (b0 + b7) / 2", "b2 = (b4 + b7) / 2", {"reads b4, which is a slot"}},
      {"step on another rank's device",
       kPair,
       "copy on 0",
       "copy on 1",
       {"lane 0 step 0 (copy on 1: b4 = b0): on device 1 of rank 1, in a lane of rank 0"}},
      {"wrong accumulator",
       half(),
       "reduce on 2 in float32",
       "reduce on 2 in float64",
       {"lane 1 step 0 (reduce on 2 in float64: b5 = b2 + b3): accumulates in float64, pack 0 in float32"}},
      {"accumulator that loses",
       half(),
       "reduce on 2 in float32",
       "reduce on 2 in bfloat16",
       {"lane 1 step 0", "accumulates in bfloat16"}},
      {"copy between types",
       half(),
       "reduce on 2 in float32: b5 = b2 + b3",
       "copy on 2: b5 = b2",
       {"lane 1 step 0 (copy on 2: b5 = b2): b2 is of type float16, b5 of type float32"}},
      {"output type wrong",
       kPair,
       "b2 output 0 of p0 on 0 float32",
       "b2 output 0 of p0 on 0 float64",
       {"b2: a result in float64, pack 0 has results in float32"}},
      {"partial sum of a third type",
       half(),
       "b5 temp 1 of p0 on 2 float32",
       "b5 temp 1 of p0 on 2 bfloat16",
       {"b5 is of type bfloat16, expected the accumulator's float32 or the pack's float16"}},
      {"integers divided as integers",
       integers(),
       "b6 = (b0[0] + b1[0]) + b2[0]",
       "b6 = ((b0[0] + b1[0]) + b2[0]) / 3",
       {"lane 0 step 0", "divides by 3 in int64, expected a type with fractions"}},
      {"different chunks in a step",
       kInPlace,
       "(b0[1] + b1[1])",
       "(b0[0] + b1[1])",
       {"b3[1] and b0[0] are different runs of chunks"}},
      {"written twice by a step",
       kInPlace,
       "b0[1] b1[1] b2[1] = b3[1]",
       "b0[1] b1[1] b1[1] = b3[1]",
       {"writes b1 twice"}},
      {"sent twice by a step", kPair, "copy on 0: b4 = b0", "copy on 0: b4 b4 = b0", {"writes b4 twice"}},
      {"copied onto itself",
       kInPlace,
       "b0[1] b1[1] b2[1] = b3[1]",
       "b3[1] = b3[1]",
       {"both reads and writes b3"}},
      {"mean of integers in integers",
       integers(),
       "reduce int64 to float64",
       "reduce int64 to int64",
       {"pack 0: divided by 3 with a result in int64"}},
      {"sum of bool",
       kPair,
       "reduce float32 to float32 / 2",
       "reduce bool to bool",
       {"pack 0: bool has no sum"}},
      {"replicas of two types",
       half(),
       "b1 inout 1 of p0 on 1 float16",
       "b1 inout 1 of p0 on 1 float32",
       {"b1: a result in float32, pack 0 has results in float16"}},
      {"two buffers for a replica",
       half(),
       "b1 inout 1 of p0 on 1",
       "b1 inout 0 of p0 on 0",
       {"b0 and b1 are both replica 0 of pack 0"}},
      {"two temporaries with a number", half(), "b5 temp 1", "b5 temp 0", {"b4 and b5 are both temporary 0"}},
  };
}

// The counts of rank 0 in a lane of their own, which its first lane waits for, or does not.
std::string counts_apart(const std::string& instead) {
  std::string text = gather();
  text.replace(text.find("  counts p0\n"), 12, instead);
  return text + "lane of rank 0\n  counts p0\n";
}

std::vector<Broken> broken_counts() {
  return {
      {"one rank without",
       gather(),
       "  counts p0\n",
       "",
       {"deadlock: lane 0 step 1 (recv c2: b3[2]) waits for a message on channel 2",
        "lane 1 step 0 (counts p0) waits for rank 0, which has not come to it"}},
      {"too late",
       gather(),
       "  counts p0\n  copy on 0: b1[0] b2[0] = b0\n",
       "  copy on 0: b1[0] b2[0] = b0\n  counts p0\n",
       {"lane 0 step 0 (copy on 0: b1[0] b2[0] = b0): rank 0 does not know the counts of pack 0 yet, "
        "expected "
        "a counts p0 before"}},
      {"twice",
       gather(),
       "  counts p0\n",
       "  counts p0\n  counts p0\n",
       {"lane 0 step 1 (counts p0): lane 0 step 0 (counts p0) brings the counts of pack 0 already"}},
      {"of a pack that has none",
       kPair,
       "  recv c1",
       "  counts p0\n  recv c1",
       {"pack 0 is not split by counts"}},
      {"in another lane, unordered",
       counts_apart("  wait lane 0 step 1\n"),
       "  wait lane 0 step 1\n",
       "",
       {"lane 3 step 0 (counts p0) brings the counts of pack 0, which lane 0 step 0 (copy on 0: b1[0] b2[0] "
        "= "
        "b0) reads, and nothing orders them"}},
  };
}

std::vector<Broken> broken_halves() {
  return {
      {"share of no destination",
       scatter(),
       "split ragged 6",
       "split ragged 7",
       {"pack 0: chunk 6 belongs to no destination"}},
      {"share without a replica",
       scatter(),
       "reduce on 0 in float32: b3 = (b0[0..1] + b7[0..1]) + b9[0..1]",
       "reduce on 0 in float32: b3 = b0[0..1] + b7[0..1]",
       {"b3 chunk 0, written by lane 0 step 4", "lacks replica 2"}},
      {"share of two replicas",
       all_gather(),
       "input 0 of p0 on 0 float32 [0..1]",
       "input 0 of p0 on 0 float32 [0..2]",
       {"pack 0: chunk 2 belongs to replica 0 and to replica 1, expected one of them"}},
      {"share of no replica",
       all_gather(),
       "split ragged 6",
       "split ragged 7",
       {"pack 0: chunk 6 belongs to no replica"}},
      {"share not gathered",
       all_gather(),
       "  copy on 1: b5[4..5] = b7[4..5]\n",
       "",
       {"no step writes b5 chunk 4, its destination 1"}},
  };
}

class VerifyRefuses : public ::testing::TestWithParam<std::vector<Broken> (*)()> {};

TEST_P(VerifyRefuses, AndNamesTheSteps) {
  for (const Broken& broken : GetParam()()) {
    const std::string message = refusal(broken.text, broken.find, broken.replace);
    for (const std::string& fragment : broken.fragments)
      EXPECT_THAT(message, HasSubstr(fragment)) << broken.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Broken, VerifyRefuses,
                         ::testing::Values(broken_channels, broken_contents, broken_order, broken_rules,
                                           broken_counts, broken_halves));

TEST(VerifyContracts, RefusesAShareOfTwoDestinations) {
  Plan plan = sample::scatter(3, {});
  for (Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::kOutput && buffer.index == 1) ++buffer.window.count;
  }
  EXPECT_THAT(
      refusal(plan),
      HasSubstr("pack 0: chunk 4 belongs to destination 1 and to destination 2, expected one of them"));
}

TEST(VerifyCounts, RefusesDifferentOrders) {
  const std::vector<Plan> gathers = {sample::ring_gather(2, Element::kInt8),
                                     sample::ring_gather(2, Element::kInt8)};
  Plan plan = side_by_side(gathers);
  EXPECT_EQ(refusal(plan), "accepted");
  for (Step& step : plan.lanes[1].steps) {
    if (step.op == Op::kCounts) step.pack = 1 - step.pack;
  }
  EXPECT_THAT(refusal(plan),
              HasSubstr("lane 1 step 0 (counts p1) is number 0 of the counts of rank 1, lane 0 step "
                        "0 (counts p0) is that of rank 0: expected the same packs in the same order"));
}

TEST(VerifyCounts, AreNeededWhereThereAreSeveralRanks) {
  std::string text = gather();
  for (std::size_t at = text.find("  counts p0\n"); at != std::string::npos;
       at = text.find("  counts p0\n")) {
    text.erase(at, 12);
  }
  EXPECT_THAT(refusal(parse_text(text)), HasSubstr("rank 0 does not know the counts of pack 0 yet"));
  Plan plan = parse_text(text);
  plan.device_rank = {0, 0, 0};
  for (Lane& lane : plan.lanes) lane.rank = 0;
  EXPECT_EQ(refusal(plan), "accepted");
}

TEST(VerifyAccepts, OtherOrdersOfIndependentSteps) {
  EXPECT_EQ(refusal(parse_text(counts_apart("  wait lane 3 step 0\n"))), "accepted");
  EXPECT_EQ(refusal(kPair, "", ""), "accepted");
  EXPECT_EQ(refusal(kInPlace, "", ""), "accepted");
  EXPECT_EQ(refusal(kTwoViews, "", ""), "accepted");
  EXPECT_EQ(refusal(kThereAndBack, "", ""), "accepted");
  EXPECT_THAT(refusal(kThereAndBack, "copy on 0: b2 b3 = b0", "copy on 0: b3 = b0\n  copy on 0: b2 = b0"),
              HasSubstr("lane 2 step 1 (copy on 0: b1 = b2) reads b2 chunk 0, which lane 0 step 1 (copy on "
                        "0: b2 = b0) writes"));
  EXPECT_EQ(refusal(kPair, "  copy on 0: b4 = b0\n  recv c1: b7\n", "  recv c1: b7\n  copy on 0: b4 = b0\n"),
            "accepted");
  EXPECT_EQ(
      refusal(gather(), "  copy on 0: b1[0] b2[0] = b0", "  copy on 0: b2[0] = b0\n  copy on 0: b1[0] = b0"),
      "accepted");
}

}  // namespace
}  // namespace onesum::plan
