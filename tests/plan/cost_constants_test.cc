#include "plan/cost_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

namespace onesum::plan {
namespace {

std::string error_of(const std::string& text) {
  try {
    constants_from_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "read";
}

TEST(CostConstants, RoundTripThroughJson) {
  const CostConstants odd{{1.0 / 3, 1e-300}, {0, 7e-9}, 0.1, 65535, 1e-7};
  EXPECT_EQ(constants_from_json(to_json(odd)), odd);
  EXPECT_EQ(constants_from_json(to_json({})), CostConstants());
  EXPECT_EQ(constants_from_json("{}"), CostConstants());
  EXPECT_EQ(to_json({}),
            R"({"inside":{"latency":2e-06,"seconds_per_byte":1e-10},)"
            R"("across":{"latency":2e-06,"seconds_per_byte":1e-10},"gamma":1e-10,"slots":2,"step":1e-07})");
  CostConstants changed;
  changed.across.latency = 3;
  EXPECT_EQ(constants_from_json(R"({"across": {"latency": 3}})"), changed);
}

TEST(CostConstants, ErrorsNameKeyFoundAndExpected) {
  const std::pair<const char*, const char*> wrongs[] = {
      {R"({"gamma": -1})", "gamma: found -1, expected seconds, a number from 0"},
      {R"({"gamma": "fast"})", R"(gamma: found "fast", expected seconds, a number from 0)"},
      {R"({"across": {"latency": null}})", "across.latency: found null, expected seconds"},
      {R"({"across": 7})", "across: found 7, expected an object"},
      {R"({"slots": 0})", "slots: found 0, expected a whole number from 1 to 65535"},
      {R"({"slots": 1.5})", "slots: found 1.5, expected a whole number from 1 to 65535"},
      {R"({"slots": -3})", "slots: found -3, expected a whole number"},
      {R"({"gama": 1})",
       R"("gama": unknown, expected inside, across, gamma, slots, step; did you mean gamma?)"},
      {R"({"inside": {"latancy": 1}})",
       R"(inside."latancy": unknown, expected latency, seconds_per_byte; did you mean latency?)"},
      {"[]", "constants: found [], expected an object"},
      {"{", "constants: no JSON at byte 2"},
  };
  for (const auto& [text, message] : wrongs)
    EXPECT_THAT(error_of(text), ::testing::HasSubstr(message)) << text;
}

}  // namespace
}  // namespace onesum::plan
