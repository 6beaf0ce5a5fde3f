// Counts that a rank does not know in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/broken_plans.h"
#include "plan/compose.h"
#include "plan/plan_texts.h"

namespace onesum::plan {

std::string counts_apart(const std::string& instead) {
  std::string text = text_of::gather();
  text.replace(text.find("  counts p0\n"), 12, instead);
  return text + "lane of rank 0\n  counts p0\n";
}

std::vector<Broken> broken_counts() {
  return {
      {"one rank without",
       text_of::gather(),
       "  counts p0\n",
       "",
       {"deadlock: lane 0 step 1 (recv c2: b3[2]) waits for a message on channel 2",
        "lane 1 step 0 (counts p0) waits for rank 0, which has not come to it"}},
      {"too late",
       text_of::gather(),
       "  counts p0\n  copy on 0: b1[0] b2[0] = b0\n",
       "  copy on 0: b1[0] b2[0] = b0\n  counts p0\n",
       {"lane 0 step 0 (copy on 0: b1[0] b2[0] = b0): rank 0 does not know the counts of pack 0 yet, "
        "expected "
        "a counts p0 before"}},
      {"twice",
       text_of::gather(),
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

namespace {

using ::testing::HasSubstr;

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
  std::string text = text_of::gather();
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

}  // namespace

}  // namespace onesum::plan
