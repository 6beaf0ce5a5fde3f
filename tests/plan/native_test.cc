// Native steps in everything that reads plans: text, verify, simulate, cost, draw and compose.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/compose.h"
#include "plan/cost.h"
#include "plan/draw.h"
#include "plan/lower_bound.h"
#include "plan/refusal.h"
#include "plan/simulate.h"
#include "plan/step_label.h"
#include "plan/text.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

// Two ranks of two devices: one collective over all, a mean that is divided on each.
constexpr const char* kAlone = R"(plan nccl
order native
devices 0 0 1 1
p0 reduce float32 to float32 / 4; replicas 0 1 2 3; destinations 0 1 2 3
g0 0 1 2 3
b0 inout 0 of p0 on 0 float32
b1 input 1 of p0 on 1 float32
b2 output 1 of p0 on 1 float32
b3 input 2 of p0 on 2 float32
b4 input 3 of p0 on 3 float32
b5 output 2 of p0 on 2 float32
b6 output 3 of p0 on 3 float32
lane of rank 0
  native all_reduce over g0: b0 b2 = b0 b1
  reduce on 0 in float32: b0 = b0 / 4
  reduce on 1 in float32: b2 = b2 / 4
lane of rank 1
  native all_reduce over g0: b5 b6 = b3 b4
  reduce on 2 in float32: b5 = b5 / 4
  reduce on 3 in float32: b6 = b6 / 4
)";

// Three groups: the sum of two halves is formed at their roots, added across ranks and given back. The roots
// are on different ranks.
constexpr const char* kRoots = R"(plan roots
order canonical over native sums
devices 0 0 1 1
p0 reduce int32 to int32; split ragged 2; replicas 0 1 2 3; destinations 0 1 2 3
g0 0 1 2 3
g1 0 2
b0 input 0 of p0 on 0 int32
b1 input 1 of p0 on 1 int32
b2 input 2 of p0 on 2 int32
b3 input 3 of p0 on 3 int32
b4 output 0 of p0 on 0 int32
b5 output 1 of p0 on 1 int32
b6 output 2 of p0 on 2 int32
b7 output 3 of p0 on 3 int32
lane of rank 0
  native reduce over g0: b4[0] = b0[0] b1[0]
  native reduce over g0: = b0[1] b1[1]
  native broadcast over g1: b4[1] =
  copy on 0: b5[1] = b4[1]
  native broadcast over g0: b5[0] = b4[0]
lane of rank 1
  native reduce over g0: = b2[0] b3[0]
  native reduce over g0: b6[1] = b2[1] b3[1]
  native broadcast over g1: = b6[1]
  copy on 3: b7[1] = b6[1]
  native broadcast over g0: b6[0] b7[0] =
)";

std::string changed(std::string text, const std::string& find, const std::string& replace) {
  const std::size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find;
  if (at != std::string::npos) text.replace(at, find.size(), replace);
  return text;
}

std::string verdict(const std::string& text) {
  try {
    return refusal(parse_text(text));
  } catch (const Error& error) {
    return error.what();
  }
}

Bytes ints(std::initializer_list<std::int32_t> values) {
  Bytes bytes(values.size() * 4);
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

TEST(Native, IsProvedAndPrintedAsItWasRead) {
  for (const char* text : {kAlone, kRoots}) {
    EXPECT_EQ(to_text(parse_text(text)), text);
    EXPECT_EQ(verdict(text), "accepted");
  }
  const Proof proof = verify(parse_text(kAlone));
  EXPECT_EQ(proof.packs.at(0).expression, "native(r0, r1, r2, r3) / 4");
  EXPECT_FALSE(proof.packs.at(0).canonical);
}

struct Fault {
  const char* text;
  std::string find;
  std::string replace;
  std::string fragment;  // of the message
};

TEST(Native, FaultsAreRefusedAndNamed) {
  const std::vector<Fault> faults = {
      // Ranks that do not meet.
      {kRoots,
       "  native broadcast over g1: = b6[1]\n  copy on 3: b7[1] = b6[1]\n  native broadcast over g0: b6[0] "
       "b7[0] =\n",
       "  native broadcast over g0: b6[0] b7[0] =\n  native broadcast over g1: = b6[1]\n  copy on 3: b7[1] = "
       "b6[1]\n",
       "deadlock: lane 0 step 2 (native broadcast over g1: b4[1] =) waits for rank 1, which has not come to "
       "it; its next native step is lane 1 step 2 (native broadcast over g0: b6[0] b7[0] =)"},
      {kRoots, "  native reduce over g0: = b2[0] b3[0]\n  native reduce over g0: b6[1] = b2[1] b3[1]\n",
       "  native reduce over g0: b6[1] = b2[1] b3[1]\n  native reduce over g0: = b2[0] b3[0]\n",
       "expected the same collective of the same chunks in the same order on every rank"},
      {kAlone, "  native all_reduce over g0: b5 b6 = b3 b4\n", "",
       "waits for rank 1, which has not come to it; no native step of that rank is left"},
      {kAlone, "g0 0 1 2 3", "g0 0 1", "rank 1 has no device in g0"},
      {kAlone, "g0 0 1 2 3\n", "g0 0 1\ng1 2 3\n", "rank 1 has no device in g0"},
      {kRoots, "native broadcast over g1: = b6[1]", "native broadcast over g0: b7[1] = b6[1]",
       "waits for rank 1, which has not come to it"},
      {kRoots, "native broadcast over g0: b6[0] b7[0] =", "native reduce over g0: = b6[0] b7[0]",
       "meets lane 1 step 4 (native reduce over g0: = b6[0] b7[0]), of rank 1"},
      // Devices of a rank that are left out, or come twice.
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 b6 = b3", "lacks a source on device 3 of g0"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 = b3 b4", "lacks a destination on device 3 of g0"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 b6 = b3 b3", "two sources on device 2"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 b5 = b3 b4", "writes b5 twice"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 b6 = b3 b1", "b1 belongs to rank 0"},
      {kRoots, "over g0: b5[0] = b4[0]", "over g0: b4[0] b5[0] =", "have 0 sources together, expected one"},
      {kRoots, "over g0: = b0[1] b1[1]", "over g0: b4[1] = b0[1] b1[1]",
       "have 2 destinations together, expected one"},
      {kRoots, "over g1: = b6[1]", "over g1: b6[1] =", "have 0 sources together"},
      {kRoots, "over g1: b4[1] =", "over g1: b5[1] =", "destination on device 1, which is not in g1"},
      // Results.
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: b5 b6 = b5 b4", "reads b5 chunk 0, which nobody wrote"},
      {kAlone, "  native all_reduce over g0: b0 b2 = b0 b1\n",
       "  copy on 1: b2 = b0\n  native all_reduce over g0: b0 b2 = b0 b2\n",
       "holds replica 0 more than once"},
      {kAlone, "  reduce on 2 in float32: b5 = b5 / 4\n", "", "divided by 1, expected 4"},
      {kAlone, "  native all_reduce over g0: b0 b2 = b0 b1\n",
       "  reduce on 0 in float32: b0 = b0 / 2\n  native all_reduce over g0: b0 b2 = b0 b1\n",
       "is divided inside the sum"},
      {kAlone, "order native", "order canonical", "the plan claims canonical order"},
      // What was overwritten: b0 is no replica any more, but the sum.
      {kAlone, "  reduce on 0 in float32: b0 = b0 / 4\n  reduce on 1 in float32: b2 = b2 / 4\n",
       "  reduce on 1 in float32: b2 = (b0 + b1) / 4\n  reduce on 0 in float32: b0 = b0 / 4\n",
       "holds replica 1 more than once: (native(r0, r1, r2, r3) + r1) / 4"},
      // Types.
      {kAlone, "b4 input 3 of p0 on 3 float32", "b4 input 3 of p0 on 3 float16", "b4 one in float16"},
      {kRoots, "reduce int32 to int32", "reduce int64 to int32", "adds int32 natively"},
      // Form.
      {kAlone, "g0 0 1 2 3", "g0 0 2 1 3", "ascending order"},
      {kAlone, "g0 0 1 2 3", "g0 0 1 2 3\ng1 0 1 2 3", "another group of the same devices"},
      {kAlone, "g0 0 1 2 3", "g0 0 1 2 4", "expected a device"},
      {kAlone, "g0 0 1 2 3", "g0", "no devices"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g1: b5 b6 = b3 b4", "g1"},
      {kAlone, "all_reduce over g0: b5 b6 = b3 b4", "scatter over g0: b5 b6 = b3 b4",
       "all_reduce, reduce or broadcast"},
      {kAlone, "over g0: b5 b6 = b3 b4", "over g0: =", "0 destinations"},
  };
  for (const Fault& fault : faults) {
    EXPECT_THAT(verdict(changed(fault.text, fault.find, fault.replace)), HasSubstr(fault.fragment))
        << fault.find << " -> " << fault.replace;
  }
}

// Two collectives of the same replicas may have other bits.
TEST(Native, ResultsComeFromOneCollective) {
  std::string text = changed(kAlone, "g0 0 1 2 3\n", "g0 0 1 2 3\ng1 0 1\n");
  text = changed(text, "lane of rank 1\n", "  native all_reduce over g0: b0 b2 = b0 b1\nlane of rank 1\n");
  EXPECT_THAT(verdict(text), HasSubstr("deadlock"));
  constexpr const char* kTwice = R"(plan twice
order native
devices 0 0
p0 reduce float32 to float32; replicas 0 1; destinations 0 1
g0 0 1
b0 input 0 of p0 on 0 float32
b1 input 1 of p0 on 1 float32
b2 output 0 of p0 on 0 float32
b3 output 1 of p0 on 1 float32
lane of rank 0
  native reduce over g0: b2 = b0 b1
  native reduce over g0: b3 = b0 b1
)";
  EXPECT_THAT(verdict(kTwice), HasSubstr("results must have the same bits"));
}

// In lanes side by side nobody knows which of two collectives is first.
TEST(Native, StepsOfARankAreOrdered) {
  const Plan alone = parse_text(kAlone);
  const std::vector<Plan> plans = {alone, alone};
  EXPECT_THAT(refusal(side_by_side(plans, LaneUse::kSeparate)),
              HasSubstr("both are native collectives of rank 0, and nothing orders them"));
  const Plan both = side_by_side(plans);
  EXPECT_EQ(refusal(both), "accepted");
  EXPECT_EQ(both.groups, alone.groups);
  const std::vector<Plan> mixed = {parse_text(kRoots), alone};
  for (const Plan& plan : {side_by_side(mixed), in_sequence(mixed)}) {
    EXPECT_EQ(refusal(plan), "accepted");
    EXPECT_EQ(plan.groups.size(), 2U);
    EXPECT_EQ(parse_text(to_text(plan)), plan);
  }
}

TEST(Native, SourcesAreReadBeforeALaterStepWritesThem) {
  // A second lane overwrites a source without waiting for the collective.
  const std::string text = std::string(kAlone) + "lane of rank 0\n  copy on 1: b0 = b1\n";
  EXPECT_THAT(verdict(text), HasSubstr("nothing orders them"));
}

TEST(Native, SimulatesToTheExactSum) {
  const Plan plan = parse_text(kRoots);
  const Sizes sizes{{3}, {{}}};
  const BytesOfPacks inputs = {
      {ints({1, -2, 3}), ints({10, 20, 30}), ints({0x7fffffff, 0, 5}), ints({1, 7, 9})}};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SimulateOptions options;
    options.seed = seed;
    const BytesOfPacks results = simulate(plan, sizes, inputs, options);
    for (const Bytes& result : results.at(0)) EXPECT_EQ(result, ints({-2147483637, 25, 47}));
  }
}

TEST(Native, CostsWhatTheBestAlgorithmWould) {
  const Plan plan = parse_text(kAlone);
  const Sizes sizes{{1000}, {{}}};
  CostConstants constants;
  constants.step = constants.gamma = 0;
  constants.across = {1.0, 0.5};
  const Cost found = cost(plan, sizes, constants);
  // Twice two hops, and twice three quarters of 4000 bytes.
  EXPECT_DOUBLE_EQ(found.seconds, 4 * 1.0 + 0.5 * 6000);
  EXPECT_EQ(found.native.steps, 2U);
  EXPECT_EQ(found.native.bytes, 2U * 3 * 4000);
  EXPECT_EQ(found.messages, 0U);
  EXPECT_EQ(found.steps, 6U);
  EXPECT_EQ(found.longest_chain, 3U);
  EXPECT_EQ(found.total.bytes_read, 8U * 4000);
  for (const char* text : {kAlone, kRoots}) {
    const Plan any = parse_text(text);
    EXPECT_GE(cost(any, sizes).seconds, lower_bound(any, sizes)->seconds);
  }
  EXPECT_THAT(
      [&] { cost(parse_text(changed(kAlone, "  native all_reduce over g0: b5 b6 = b3 b4\n", "")), sizes); },
      ::testing::ThrowsMessage<Error>(HasSubstr("the other ranks of its group")));
}

TEST(Native, IsDrawnAsStepsThatRunTogether) {
  const std::string svg = to_svg(parse_text(kAlone));
  EXPECT_THAT(svg, HasSubstr("native all_reduce"));
  EXPECT_THAT(svg, HasSubstr("x, out1 = Σ(x, in1, …)"));
  EXPECT_THAT(svg, HasSubstr("native collective</text>"));
  EXPECT_THAT(svg, HasSubstr("run together</text>"));
  EXPECT_EQ(step_label(parse_text(kRoots), {0, 2}, 80).formula, "out = …");
  EXPECT_EQ(step_label(parse_text(kRoots), {0, 1}, 80).formula, "… = Σ(in, in1, …)");
  EXPECT_EQ(step_label(parse_text(kRoots), {0, 1}, 80).head, "native reduce [1]");
  EXPECT_THAT(to_svg(parse_text(kRoots)), HasSubstr("native broadcast"));
}

}  // namespace
}  // namespace onesum::plan
