// Every broken plan is refused with the message that its table expects; what only looks broken is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/broken_plans.h"
#include "plan/plan_texts.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(refusal(text_of::gather(), "  copy on 0: b1[0] b2[0] = b0",
                    "  copy on 0: b2[0] = b0\n  copy on 0: b1[0] = b0"),
            "accepted");
}

}  // namespace
}  // namespace onesum::plan
