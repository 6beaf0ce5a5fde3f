// An all-reduce that is never stored costs what the stored plan costs, to the last bit.
#include "collective/streamed.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/all_reduce.h"
#include "collective/layouts.h"
#include "plan/cost.h"
#include "plan/timeline.h"

namespace onesum::collective {
namespace {

// One slot or several, and time that goes into links, memory or steps.
std::vector<plan::CostConstants> constants_to_try() {
  return {
      plan::CostConstants{}, {{1e-6, 1e-10}, {5e-6, 3e-10}, 2e-10, 1, 0}, {{0, 0}, {0, 1e-9}, 0, 5, 1e-7}};
}

void expect_costs_the_same(const Layout& layout, const Scheme& scheme) {
  SCOPED_TRACE(to_string(scheme) + " on " + layout.name());
  const Topology topology = layout.topology();
  const Task task = layout.task(ReduceOp::kMean, DType::kBFloat16, false);
  const plan::Plan stored = all_reduce(topology, task, scheme);
  const plan::Sizes sizes{{1003}, {}};
  for (const plan::CostConstants& constants : constants_to_try()) {
    const StreamedAllReduce streamed(topology, task, scheme);
    const plan::Cost seen = plan::timeline(streamed.lanes(), sizes, constants, streamed.links());
    const plan::Cost expected = plan::cost(stored, sizes, constants);
    EXPECT_EQ(seen.seconds, expected.seconds);
    EXPECT_EQ(seen.longest_chain, expected.longest_chain);
    EXPECT_EQ(seen.steps, expected.steps);
    EXPECT_EQ(seen.messages, expected.messages);
    EXPECT_EQ(seen.across.bytes, expected.across.bytes);
    EXPECT_EQ(seen.total.bytes_read, expected.total.bytes_read);
    EXPECT_EQ(seen.total.additions, expected.total.additions);
  }
}

TEST(StreamedAllReduce, CostsWhatTheStoredPlanCosts) {
  for (Scheme scheme : all_schemes()) {
    if (scheme.across != Algorithm::kRing && scheme.across != Algorithm::kHalvingDoubling) continue;
    for (const std::uint32_t shards : {1U, 3U}) {
      scheme.shards = shards;
      for (const std::int32_t workers : {1, 2, 7}) {
        for (const std::int32_t devices : {1, 2})
          expect_costs_the_same({workers, devices, {}, false}, scheme);
      }
      for (const Layout& layout : odd_layouts()) expect_costs_the_same(layout, scheme);
    }
  }
}

TEST(StreamedAllReduce, CostsTheSameInSeveralStretches) {
  for (const char* name : {"xring", "nccl/xring", "rechd"}) {
    for (const std::int32_t devices : {1, 2}) {
      expect_costs_the_same({70, devices, {}, false}, scheme_named(name, 1).value());
    }
  }
}

// Only then may a lane be followed ahead of the others.
TEST(StreamedAllReduce, LinksAreOwnAroundOneRingOfRanks) {
  const auto links = [](std::int32_t devices, const std::string& name, std::uint32_t shards) {
    Layout layout;
    layout.workers = 4;
    layout.devices = devices;
    const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
    return StreamedAllReduce(layout.topology(), task, scheme_named(name, shards).value()).links();
  };
  EXPECT_EQ(links(1, "xring", 1), plan::Links::kOwn);
  EXPECT_EQ(links(2, "nccl/xring", 1), plan::Links::kOwn);
  EXPECT_EQ(links(2, "xring", 1), plan::Links::kShared);
  EXPECT_EQ(links(1, "xring", 2), plan::Links::kShared);
  EXPECT_EQ(links(1, "rechd", 1), plan::Links::kShared);
  EXPECT_EQ(links(1, "direct", 1), plan::Links::kShared);
}

}  // namespace
}  // namespace onesum::collective
