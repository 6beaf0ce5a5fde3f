// What `auto` considers and prefers, with the built-in constants.
#include "planner/automatic.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/element.h"

namespace onesum::planner {
namespace {

using collective::Algorithm;

collective::Topology topology_of(std::int32_t workers, std::int32_t devices) {
  collective::Topology topology;
  for (std::int32_t i = 0; i < workers * devices; ++i) topology.device_rank.push_back(i / devices);
  return topology;
}

collective::Task task_of(std::int32_t replicas) {
  collective::Task task;
  for (std::int32_t i = 0; i < replicas; ++i) {
    task.replicas.push_back({i, Element::kFloat32});
    task.destinations.push_back({i, -1});
  }
  return task;
}

std::vector<Candidate> rank(std::int32_t workers, std::int32_t devices, std::size_t elements,
                            const CommunicationOptions& options = {}) {
  return candidates(topology_of(workers, devices), task_of(workers * devices), elements, options, {});
}

bool has(const std::vector<Candidate>& ranked, Algorithm algorithm) {
  return std::ranges::any_of(ranked, [&](const Candidate& c) { return c.scheme.across == algorithm; });
}

TEST(Automatic, InOneWorkerIsTheOnePassReduce) {
  for (const std::size_t elements : {1U, 1U << 24}) {
    const std::vector<Candidate> ranked = rank(1, 4, elements);
    ASSERT_EQ(ranked.size(), 1U);
    EXPECT_EQ(to_string(ranked.front().scheme), "nccl/nccl");
  }
}

TEST(Automatic, PutsTheFastestFirst) {
  for (const std::size_t elements : {1U, 1U << 12, 1U << 22}) {
    const std::vector<Candidate> ranked = rank(4, 2, elements);
    EXPECT_TRUE(std::ranges::is_sorted(ranked, {}, &Candidate::seconds));
    EXPECT_GE(ranked.size(), 2U);
  }
}

// Few bytes to many workers: the two messages of `direct` beat the hops of halving-doubling, until there are
// so many that sending them one by one takes longer.
TEST(Automatic, WeighsHopsAgainstMessages) {
  EXPECT_EQ(rank(8, 1, 1).front().scheme.across, Algorithm::kDirect);
  EXPECT_EQ(rank(250, 1, 1).front().scheme.across, Algorithm::kHalvingDoubling);
  EXPECT_FALSE(has(rank(300, 1, 1), Algorithm::kDirect));
}

TEST(Automatic, ConsidersRingsOnlyWhereTheOrderIsFree) {
  CommunicationOptions options;
  EXPECT_FALSE(has(rank(4, 2, 1 << 20), Algorithm::kRing));
  options.implementation = Implementation::kRing;
  EXPECT_FALSE(has(rank(4, 2, 1 << 20, options), Algorithm::kRing));
  options.numerics = Numerics::kFast;
  EXPECT_EQ(rank(4, 2, 1 << 20, options).front().scheme.across, Algorithm::kRing);
  options.implementation = Implementation::kAuto;
  EXPECT_TRUE(has(rank(4, 2, 1 << 20, options), Algorithm::kRing));
  EXPECT_TRUE(has(rank(4, 2, 1 << 20, options), Algorithm::kDirect));
}

TEST(Automatic, SaysWhatTheRunnerUpWouldCost) {
  const std::string reason = reason_of(rank(4, 2, 1 << 10));
  EXPECT_NE(reason.find("is predicted to take"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the runner-up"), std::string::npos) << reason;
}

}  // namespace
}  // namespace onesum::planner
