#include "plan/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/sample_plans.h"
#include "plan/step_label.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const sample::Types kSum = sample::types_of(ReduceOp::kSum, DType::kFloat32);

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Draw, ShowsEveryStepAndMessage) {
  const std::string svg = to_svg(sample::ring(4, kSum));
  EXPECT_THAT(svg, HasSubstr(">ring</text>"));
  EXPECT_THAT(svg, HasSubstr("order: ring · 28 steps in 7 rows · 24 messages"));
  EXPECT_EQ(count(svg, ">reduce ["), 16u);
  EXPECT_EQ(count(svg, ">copy ["), 12u);
  EXPECT_EQ(count(svg, "marker-end="), 24u);
  EXPECT_THAT(svg, HasSubstr(">device 3</text>"));
  EXPECT_THAT(svg, HasSubstr(">out, →1 = ←3 + in</text>"));
}

TEST(Draw, EveryElementIsClosed) {
  for (const Plan& plan : sample::all()) {
    const std::string svg = to_svg(plan, {"a < b & c", {}});
    EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
    EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
    EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
    for (const char* name : {"text", "g", "defs", "marker"}) {
      EXPECT_EQ(count(svg, std::string("<") + name + " ") + count(svg, std::string("<") + name + ">"),
                count(svg, std::string("</") + name + ">"))
          << name;
    }
  }
}

TEST(Draw, ArrowsLeaveFromReplicasAndEndAtResultsOfOtherDevices) {
  const std::string svg = to_svg(sample::one_device(4, kSum, false));
  EXPECT_EQ(count(svg, "marker-end="), 6u);
  EXPECT_THAT(svg, HasSubstr("memory of another device"));
  EXPECT_THAT(svg, Not(HasSubstr(">message<")));
  EXPECT_THAT(svg, HasSubstr(">out, out1, out2, out3 = (in + in1) + (in2 + in3)</text>"));
}

TEST(Draw, TakesDeviceNames) {
  const std::string svg = to_svg(sample::ring(2, kSum), {"", {"/job:worker/task:0/device:CPU:0", "other"}});
  EXPECT_THAT(svg, HasSubstr("/job:worker/task:0/device:CPU:0"));
  EXPECT_THROW(to_svg(sample::ring(3, kSum), {"", {"one", "two"}}), Error);
}

TEST(Draw, RefusesWhatDoesNotFit) {
  try {
    to_svg(sample::direct(17, kSum));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("at most 16 devices and 600 steps, the plan has 17 and"));
  }
  EXPECT_NO_THROW(to_svg(sample::halving_doubling(16, kSum)));
}

TEST(Draw, LabelsStayShort) {
  const Plan plan = sample::one_device(200, kSum, true);
  const StepLabel label = step_label(plan, {0, 0}, 30);
  EXPECT_EQ(label.head, "reduce");
  EXPECT_EQ(label.formula, "200 results = sum of 200");
}

}  // namespace
}  // namespace onesum::plan
