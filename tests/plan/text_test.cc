#include "plan/text.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/compose.h"
#include "plan/sample_plans.h"
#include "plan/well_formed.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

std::string parse_error(const std::string& text) {
  try {
    parse_text(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "parsed";
}

TEST(Text, ShowsTheOrderOfAdditions) {
  const std::string text =
      to_text(sample::one_device(6, sample::types_of(ReduceOp::kMean, DType::kFloat32), false));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  reduce on 0 in float32: b6 b7 b8 b9 b10 b11 = (((b0 + b1) + (b2 + b3)) + (b4 + b5)) / 6\n"));
}

TEST(Text, IsReadable) {
  EXPECT_EQ(to_text(sample::two_lanes(sample::types_of(ReduceOp::kSum, DType::kFloat16))),
            "plan two_lanes\n"
            "order canonical\n"
            "devices 0 0 0 0\n"
            "p0 reduce float32 to float16; replicas 0 1 2 3; destinations 0 1 2 3\n"
            "b0 inout 0 of p0 on 0 float16\n"
            "b1 inout 1 of p0 on 1 float16\n"
            "b2 inout 2 of p0 on 2 float16\n"
            "b3 inout 3 of p0 on 3 float16\n"
            "b4 temp 0 of p0 on 0 float32\n"
            "b5 temp 1 of p0 on 2 float32\n"
            "lane of rank 0\n"
            "  reduce on 0 in float32: b4 = b0 + b1\n"
            "  wait lane 1 step 0\n"
            "  reduce on 0 in float32: b0 b1 b2 b3 = b4 + b5\n"
            "lane of rank 0\n"
            "  reduce on 2 in float32: b5 = b2 + b3\n");
}

TEST(Text, ShowsContractsAndCounts) {
  EXPECT_THAT(
      to_text(sample::scatter(2, sample::types_of(ReduceOp::kMean, DType::kFloat16))),
      HasSubstr("p0 scatter float32 to float16 / 2; split ragged 4; replicas 0 1; destinations 0 1\n"));
  EXPECT_THAT(to_text(sample::ring_all_gather(2, Element::kInt8)),
              HasSubstr("b0 input 0 of p0 on 0 int8 [0..1]\n"));
  EXPECT_THAT(to_text(sample::ring_gather(2, Element::kInt8)),
              HasSubstr("lane of rank 1\n  counts p0\n  copy"));
}

TEST(Text, RoundTripsPlans) {
  for (const Plan& plan : sample::all()) EXPECT_EQ(parse_text(to_text(plan)), plan) << to_text(plan);
  EXPECT_EQ(parse_text(to_text(Plan{})), Plan{});
}

// Postfix of a random tree over n sources.
std::vector<std::uint8_t> random_merges(std::size_t n, std::mt19937& random) {
  std::vector<std::uint8_t> merges(n, 0);
  std::size_t depth = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ++depth;
    const std::size_t most = depth - 1;
    std::size_t count = i + 1 == n ? most : std::min<std::size_t>(most, random() % 4);
    merges[i] = static_cast<std::uint8_t>(count);
    depth -= count;
  }
  return merges;
}

TEST(Text, RoundTripsTreesOfAnyShape) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::size_t n = 1 + random() % 40;
    Plan plan = sample::one_device(static_cast<std::int32_t>(n),
                                   sample::types_of(ReduceOp::kSum, DType::kFloat32), false);
    if (i % 2 == 0) plan.lanes[0].steps[0].divisor = 1 + static_cast<std::int64_t>(random() % 3);
    const std::vector<std::uint8_t> merges = random_merges(n, random);
    for (std::size_t s = 0; s < n; ++s) plan.operands[n + s].merges = merges[s];
    ASSERT_EQ(parse_text(to_text(plan)), plan) << to_text(plan);
  }
}

TEST(Text, RoundTripsDeepTrees) {
  // Left to right, and 255 additions that end at one source.
  for (const bool left : {true, false}) {
    const std::size_t n = left ? 5000 : 256;
    Plan plan = sample::one_device(static_cast<std::int32_t>(n),
                                   sample::types_of(ReduceOp::kSum, DType::kFloat32), false);
    for (std::size_t s = 0; s < n; ++s) {
      plan.operands[n + s].merges =
          static_cast<std::uint8_t>(left ? (s > 0 ? 1 : 0) : (s + 1 == n ? n - 1 : 0));
    }
    EXPECT_EQ(parse_text(to_text(plan)), plan);
  }
}

TEST(Text, SkipsCommentsAndSpaces) {
  const Plan plan = sample::one_device(2, sample::types_of(ReduceOp::kSum, DType::kInt32), false);
  std::string text = "# a plan\r\n\n";
  for (const char c : to_text(plan))
    text += c == ' ' ? "\t " : c == '\n' ? " \r\n   # more\n\n" : std::string(1, c);
  EXPECT_EQ(parse_text(text), plan);
}

TEST(Text, TakesParenthesesThatAreNotNeeded) {
  const std::string text =
      to_text(sample::one_device(2, sample::types_of(ReduceOp::kSum, DType::kInt32), false));
  std::string with = text;
  with.replace(with.find("b0 + b1"), 7, "(b0 + b1) / 1");
  EXPECT_EQ(parse_text(with), parse_text(text));
}

TEST(Text, RefusesToPrintWhatIsNotWellFormed) {
  const Plan good = sample::two_lanes(sample::types_of(ReduceOp::kSum, DType::kFloat32));
  Plan plan = good;
  plan.operands[0].buffer = 99;
  EXPECT_THROW(to_text(plan), Error);
  plan = good;
  plan.algorithm = "two\nlines";
  EXPECT_THROW(to_text(plan), Error);
  plan = good;
  plan.lanes[0].steps[1].divisor = 2;  // of a wait
  EXPECT_THROW(to_text(plan), Error);
  plan = good;
  std::swap(plan.lanes[0].steps[0], plan.lanes[0].steps[2]);  // operands out of order
  EXPECT_THROW(to_text(plan), Error);
}

struct Wrong {
  const char* find;
  const char* replace;
  const char* message;
};

TEST(Text, NamesLineFoundAndExpected) {
  const std::string good = to_text(sample::ring(3, sample::types_of(ReduceOp::kMean, DType::kFloat16)));
  const Wrong wrongs[] = {
      {"plan ring", "plam ring", "line 1: found \"plam\", expected \"plan\""},
      {"devices 0 1 2", "devices 0 1 99999", "line 3: found \"99999\", expected a rank from 0 to 65535"},
      {"p0 reduce", "p1 reduce", "line 4: found \"p1\", expected \"p0\""},
      {"float32 to float16", "float33 to float16", "line 4: found \"float33\", expected an element type"},
      {" / 3;", " / 0;", "line 4: found \"0\", expected a divisor from 1"},
      {" / 3;", " / 99999999999999999999;", "found \"99999999999999999999\", expected a divisor"},
      {"ragged 3", "ragged 2000000", "line 4: found \"2000000\", expected a number of parts"},
      {"ragged 3", "ragged 1048576 padded 1048576", "line 4: pack 0: more than 1048576 chunks"},
      {"ragged 3", "counts 2", "line 4: pack 0: split by counts into 2 parts for 3 replicas"},
      {"replicas 0 1 2", "replicas 0 1 7", "line 4: found \"7\", expected a device from 0 to 2"},
      {"c1 0 -> 1 number 1", "c1 0 -> 1",
       "line 6: channel 1: there is another one from device 0 to device 1"},
      {"b0 input 0 of p0 on 0", "b0 input 0 of p0 on 1", "line 11: b0: on device 1, expected 0"},
      {"b0 input 0", "b0 input 3", "line 11: b0: replica 3 of 3"},
      {"of p0 on 0 float16", "of p4 on 0 float16", "line 11: found \"p4\", expected p0 to p0"},
      {"slot c0", "slot c6", "found \"c6\", expected c0 to c5"},
      {"lane of rank 0", "lane of rank x", "found \"x\", expected a rank"},
      {" = b0[0]", " = b99[0]", "found \"b99\", expected b0 to b"},
      {" = b0[0]", " = b0[3]", "3, it has 3 from 0"},
      {" = b0[0]", " = b0[2..1]", "found \"1\", expected a chunk from 2"},
      {" = b0[0]", " = b0[0] / 4 x", "found \"x\", expected the end of the line"},
      {"recv c4:", "recv c5:", "is no view of channel 5"},
      {"release c4", "release", "found the end of the line, expected c0 to c5"},
      {"  release c4", "  relase c4", "found \"relase\", expected copy, reduce"},
      {" + b0[2]", " + (b0[2])", "expected \"+\""},
      {" + b0[2]", " + b0[2] + b0[2]", "found \"+\", expected the end of the line"},
  };
  for (const Wrong& wrong : wrongs) {
    std::string text = good;
    const std::size_t at = text.find(wrong.find);
    ASSERT_NE(at, std::string::npos) << wrong.find << " in\n" << text;
    text.replace(at, std::string(wrong.find).size(), wrong.replace);
    const std::string message = parse_error(text);
    EXPECT_THAT(message, HasSubstr(wrong.message)) << wrong.find << " -> " << wrong.replace;
    EXPECT_THAT(message, HasSubstr("line ")) << message;
  }
}

TEST(Text, StaysSmallForHostileText) {
  const std::string header =
      "plan x\norder y\ndevices 0\np0 reduce float32 to float32; replicas 0; destinations 0\n"
      "b0 input 0 of p0 on 0 float32\nb1 output 0 of p0 on 0 float32\nlane of rank 0\n";
  const std::string step = "reduce on 0 in float32: b1 = ";
  EXPECT_THAT(parse_error(header + step + std::string(1000000, '(')), HasSubstr("line 8"));
  EXPECT_THAT(parse_error(header + step + std::string(300, '(') + "b0"), HasSubstr("expected \"+\""));
  std::string many = header + step;  // 300 additions that end at one source
  for (int i = 0; i < 300; ++i) many += "(b0 + ";
  EXPECT_THAT(parse_error(many + "b0" + std::string(300, ')')),
              HasSubstr("at most 255 additions that end here"));
  many = header + step + "b0";
  for (int i = 0; i < 70000; ++i) many += " + b0";
  EXPECT_THAT(parse_error(many), HasSubstr("line 8"));
  EXPECT_THAT(parse_error(header + "wait lane 0 step 5"), HasSubstr("line 8"));
  EXPECT_THAT(parse_error(std::string(1000, '\0')), HasSubstr("line 1"));
  EXPECT_THAT(parse_error(""), HasSubstr("expected the lines plan, order and devices"));
}

}  // namespace
}  // namespace onesum::plan
