// What `auto` considers and prefers, with the built-in constants.
#include "planner/automatic.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
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

std::vector<Candidate> rank_on(const std::vector<std::int32_t>& machines, std::int32_t devices,
                               std::size_t elements, const CommunicationOptions& options = {}) {
  const auto workers = static_cast<std::int32_t>(machines.size());
  collective::Topology topology = topology_of(workers, devices);
  topology.machines = machines;
  return candidates(topology, task_of(workers * devices), elements, options, {});
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

// Few bytes to many workers: the one message of `exchange` beats the two of `direct`, and these the hops of
// halving-doubling, until there are so many that sending them one by one takes longer.
TEST(Automatic, WeighsHopsAgainstMessages) {
  EXPECT_EQ(rank(8, 1, 1).front().scheme.across, Algorithm::kExchange);
  EXPECT_EQ(rank(8, 1, 1 << 17).front().scheme.across, Algorithm::kDirect);
  EXPECT_EQ(rank(250, 1, 1).front().scheme.across, Algorithm::kHalvingDoubling);
  EXPECT_FALSE(has(rank(300, 1, 1), Algorithm::kDirect));
  EXPECT_FALSE(has(rank(300, 1, 1), Algorithm::kExchange));
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

std::set<std::string> names_of(const std::vector<Candidate>& ranked) {
  std::set<std::string> names;
  for (const Candidate& candidate : ranked) names.insert(to_string(candidate.scheme));
  return names;
}

// On one machine, up to the sizes that were measured.
TEST(Automatic, WaitsOnceWhereThatIsFastest) {
  const auto best = [](const std::vector<Candidate>& ranked) { return to_string(ranked.front().scheme); };
  constexpr std::size_t kKiB = 1 << 8;  // of float32
  for (const std::int32_t workers : {3, 4}) {
    EXPECT_EQ(best(rank(workers, 1, 16 * kKiB)), "nccl/exchange") << workers;
    EXPECT_EQ(best(rank(workers, 1, 16 * kKiB + 1)), "nccl/direct") << workers;
    EXPECT_EQ(best(rank(workers, 3, 16 * kKiB)), "nccl/direct") << workers;
  }
  EXPECT_EQ(best(rank(7, 1, 9 * kKiB)), "nccl/exchange");
  EXPECT_EQ(best(rank(7, 1, 10 * kKiB)), "nccl/direct");
  EXPECT_EQ(best(rank(8, 1, 8 * kKiB)), "nccl/exchange");
  EXPECT_EQ(best(rank(16, 1, 4 * kKiB)), "nccl/exchange");
  EXPECT_FALSE(has(rank(17, 1, 1), Algorithm::kExchange));
  EXPECT_EQ(best(rank(2, 1, 1 << 24)), "nccl/exchange");
  EXPECT_EQ(best(rank_on({0, 1}, 1, 64 * kKiB)), "nccl/rechd");
  EXPECT_FALSE(has(rank_on({0, 1}, 1, 2048 * kKiB), Algorithm::kExchange));
  EXPECT_NE(reason_of(rank(2, 1, 1 << 18)).find("wait for each other once"), std::string::npos);
  EXPECT_NE(reason_of(rank(2, 1, 1 << 18)).find("; the runner-up nccl/"), std::string::npos);
  EXPECT_EQ(reason_of(rank(4, 1, 1 << 18)).find("once"), std::string::npos);
  collective::Task halves = task_of(2);
  halves.output = Element::kBFloat16;
  for (collective::Source& replica : halves.replicas) replica.element = Element::kBFloat16;
  EXPECT_EQ(best(candidates(topology_of(2, 1), halves, 512 * kKiB, {}, {})), "nccl/exchange");
  collective::Topology by_network = topology_of(2, 1);
  by_network.by_network = true;
  EXPECT_EQ(best(candidates(by_network, task_of(2), 2048 * kKiB, {}, {})), "nccl/exchange");
  EXPECT_FALSE(has(candidates(by_network, task_of(2), 2048 * kKiB + 1, {}, {}), Algorithm::kExchange));
  EXPECT_NE(best(candidates(by_network, halves, 512 * kKiB, {}, {})), "nccl/exchange");
  CommunicationOptions options;
  options.numerics = Numerics::kFast;
  options.implementation = Implementation::kRing;
  EXPECT_EQ(best(rank(2, 1, 1, options)), "nccl/xring");
}

// Many workers on one machine, from where they no longer add up everything by themselves.
TEST(Automatic, PoolsWhatManyWorkersHave) {
  const auto best = [](const std::vector<Candidate>& ranked) { return to_string(ranked.front().scheme); };
  constexpr std::size_t kKiB = 1 << 8;  // of float32
  EXPECT_EQ(best(rank(8, 1, 8 * kKiB + 1)), "nccl/pool");
  EXPECT_EQ(best(rank(16, 1, 4 * kKiB + 1)), "nccl/pool");
  for (const std::int32_t workers : {8, 13, 16}) {
    EXPECT_EQ(best(rank(workers, 1, 256 * kKiB)), "nccl/pool") << workers;
    EXPECT_EQ(best(rank(workers, 1, 256 * kKiB + 1)), "nccl/direct") << workers;
    EXPECT_FALSE(has(rank(workers, 2, 64 * kKiB), Algorithm::kPool)) << workers;
  }
  EXPECT_FALSE(has(rank(7, 1, 64 * kKiB), Algorithm::kPool));
  EXPECT_FALSE(has(rank(17, 1, 64 * kKiB), Algorithm::kPool));
  EXPECT_FALSE(has(rank_on({0, 0, 0, 0, 1, 1, 1, 1}, 1, 64 * kKiB), Algorithm::kPool));
  collective::Topology by_network = topology_of(8, 1);
  by_network.by_network = true;
  EXPECT_FALSE(has(candidates(by_network, task_of(8), 64 * kKiB, {}, {}), Algorithm::kPool));
  EXPECT_NE(reason_of(rank(8, 1, 64 * kKiB)).find("few messages"), std::string::npos);
  collective::Task halves = task_of(8);
  halves.output = Element::kBFloat16;
  for (collective::Source& replica : halves.replicas) replica.element = Element::kBFloat16;
  EXPECT_EQ(best(candidates(topology_of(8, 1), halves, 64 * kKiB, {}, {})), "nccl/pool");
}

// Nothing was measured on GPUs, for which predictions decide.
TEST(Automatic, KnowsNothingOfGpus) {
  for (const std::int32_t workers : {2, 4, 8}) {
    collective::Topology topology = topology_of(workers, 1);
    EXPECT_TRUE(candidates(topology, task_of(workers), 1 << 11, {}, {}).front().is_known_best) << workers;
    topology.gpus.assign(topology.device_rank.size(), true);
    for (const Candidate& candidate : candidates(topology, task_of(workers), 1 << 11, {}, {})) {
      EXPECT_FALSE(candidate.is_known_best) << workers;
    }
  }
}

// Where workers of one machine speak over TCP.
TEST(Automatic, SendsTheFewestMessagesByTheNetwork) {
  constexpr std::size_t kKiB = 1 << 8;  // of float32
  const auto ranked = [](std::int32_t workers, std::int32_t devices, std::size_t elements,
                         std::vector<std::int32_t> machines = {}) {
    collective::Topology topology = topology_of(workers, devices);
    topology.by_network = true;
    topology.machines = std::move(machines);
    return candidates(topology, task_of(workers * devices), elements, {}, {});
  };
  const auto best = [&](auto&&... arguments) {
    return to_string(ranked(std::forward<decltype(arguments)>(arguments)...).front().scheme);
  };
  for (const std::int32_t workers : {3, 4, 16}) {
    EXPECT_EQ(best(workers, 1, 1), "nccl/doubling") << workers;
    EXPECT_EQ(best(workers, 1, 16 * kKiB), "nccl/doubling") << workers;
    EXPECT_FALSE(has(ranked(workers, 1, 16 * kKiB + 1), Algorithm::kDoubling)) << workers;
    EXPECT_EQ(ranked(workers, 1, 16 * kKiB + 1).front().is_known_best, workers != 3) << workers;
    EXPECT_FALSE(has(ranked(workers, 2, 1), Algorithm::kDoubling)) << workers;
    EXPECT_FALSE(has(rank(workers, 1, 1), Algorithm::kDoubling)) << workers;
  }
  EXPECT_EQ(best(4, 1, 16 * kKiB + 1), "nccl/rechd");
  EXPECT_EQ(best(4, 1, 65536 * kKiB), "nccl/rechd");
  EXPECT_EQ(best(2, 1, 2048 * kKiB), "nccl/exchange");
  EXPECT_FALSE(has(ranked(17, 1, 1), Algorithm::kDoubling));
  EXPECT_FALSE(has(ranked(4, 1, 1, {0, 1, 2, 3}), Algorithm::kDoubling));
  EXPECT_NE(reason_of(ranked(4, 1, 1)).find("the fewest messages"), std::string::npos);
}

// What the options ask for, in one shard.
TEST(Automatic, ConsidersJustThese) {
  using Names = std::set<std::string>;
  constexpr std::size_t kMiB = 1 << 18;  // of float32
  EXPECT_EQ(names_of(rank(4, 2, kMiB / 3)), (Names{"nccl/direct", "nccl/rechd", "nccl/exchange"}));
  EXPECT_EQ(names_of(rank(4, 2, kMiB / 3 + 1)), (Names{"nccl/direct", "nccl/rechd"}));
  EXPECT_EQ(names_of(rank(4, 2, kMiB - 1)), (Names{"nccl/direct", "nccl/rechd"}));
  EXPECT_EQ(names_of(rank(4, 2, 64 * kMiB)), (Names{"nccl/direct", "nccl/rechd"}));
  CommunicationOptions options;
  options.implementation = Implementation::kNccl;
  EXPECT_EQ(names_of(rank(4, 2, kMiB, options)), (Names{"nccl/nccl"}));
  options.numerics = Numerics::kFast;
  options.implementation = Implementation::kRing;
  EXPECT_EQ(names_of(rank(4, 2, kMiB, options)), (Names{"nccl/xring"}));
  options.implementation = Implementation::kAuto;
  EXPECT_EQ(names_of(rank(4, 2, 1, options)),
            (Names{"nccl/direct", "nccl/exchange", "nccl/rechd", "nccl/xring"}));
  for (const Candidate& candidate : rank(4, 2, 1, options)) EXPECT_TRUE(candidate.scheme.fast);
  for (const Candidate& candidate : rank(4, 2, 1)) EXPECT_FALSE(candidate.scheme.fast);
}

// Nobody promises an order for what the GPUs' library adds.
TEST(Automatic, ConsidersNativeSumsOnlyWhereTheOrderIsFree) {
  for (const auto& [workers, machines] :
       {std::pair{1, 1}, std::pair{4, 1}, std::pair{4, 2}, std::pair{4, 4}}) {
    collective::Topology topology = topology_of(workers, 2);
    for (std::int32_t rank = 0; rank < workers; ++rank) {
      topology.machines.push_back(rank * machines / workers);
    }
    topology.gpus.assign(topology.device_rank.size(), true);
    const collective::Task task = task_of(workers * 2);
    const auto count = [&](const CommunicationOptions& options, auto&& predicate) {
      const std::vector<Candidate> ranked = candidates(topology, task, 1 << 20, options, {});
      EXPECT_FALSE(ranked.empty());
      return std::ranges::count_if(ranked, [&](const Candidate& c) { return predicate(c.scheme); });
    };
    const auto is_native = [&](const collective::Scheme& scheme) {
      return collective::is_native(topology, task, scheme);
    };
    const auto is_other_order = [&](const collective::Scheme& scheme) {
      return !collective::is_canonical(topology, task, scheme);
    };
    CommunicationOptions options;
    for (const Implementation implementation : {Implementation::kAuto, Implementation::kNccl}) {
      options.implementation = implementation;
      EXPECT_EQ(count(options, is_native), 0);
      EXPECT_EQ(count(options, is_other_order), 0);
    }
    options.numerics = Numerics::kFast;
    EXPECT_GT(count(options, is_native), 0);
    options.implementation = Implementation::kAuto;
    EXPECT_GT(count(options, is_native), 0);
  }
}

TEST(Automatic, AddsUpInsideMachinesThatWorkersShare) {
  using Names = std::set<std::string>;
  constexpr std::size_t kMiB = 1 << 18;  // of float32
  EXPECT_EQ(names_of(rank_on({0, 0, 1, 1}, 2, kMiB - 1)), (Names{"nccl/machines"}));
  EXPECT_EQ(names_of(rank_on({0, 0, 1, 1}, 2, kMiB)), (Names{"nccl/machines"}));
  EXPECT_EQ(names_of(rank_on({0, 1, 0, 1}, 1, 1)), (Names{"nccl/exchange", "nccl/machines"}));
  EXPECT_EQ(names_of(rank_on({0, 0, 1}, 1, 1)), (Names{"nccl/exchange", "nccl/machines"}));
  // Nothing to be gained.
  EXPECT_EQ(names_of(rank_on({0, 0, 0, 0}, 2, 1)), names_of(rank(4, 2, 1)));
  const Names without{"nccl/direct", "nccl/exchange", "nccl/rechd"};
  EXPECT_EQ(names_of(rank_on({0, 1, 2, 3}, 2, 1)), without);
  EXPECT_EQ(names_of(rank_on({0, 0}, 2, 1)), names_of(rank(2, 2, 1)));
  // Two workers on two branches of the tree would send half of each, eight on four half of each.
  EXPECT_EQ(names_of(rank_on({0, 1, 1}, 1, 1)), without);
  EXPECT_EQ(names_of(rank_on({0, 1, 1, 1, 1, 1, 1, 1, 1}, 1, 1)), without);
  EXPECT_EQ(names_of(rank_on({0, 0, 0, 0, 0, 0, 0, 0, 1}, 1, 5000)), (Names{"nccl/machines"}));
  // Few bytes may go to everyone at once, if they are fewer than inside a machine.
  EXPECT_FALSE(has(rank_on({0, 0, 1, 1}, 1, 10000), Algorithm::kExchange));
  EXPECT_TRUE(has(rank_on({0, 0, 0, 0}, 1, 10000), Algorithm::kExchange));
  // Everyone on one of many machines: the plan would be too large.
  std::vector<std::int32_t> many;
  for (std::int32_t worker = 0; worker < 300; ++worker) many.push_back(worker / 100);
  EXPECT_EQ(names_of(rank_on(many, 1, 1)), (Names{"nccl/rechd"}));
}

// Workers that share a machine, but not the task's.
TEST(Automatic, AsksWhereTheTasksOwnWorkersAre) {
  collective::Topology topology = topology_of(4, 1);
  topology.machines = {0, 0, 1, 1};
  collective::Task task = task_of(4);
  std::erase_if(task.replicas, [](const collective::Source& replica) { return replica.device % 2 == 1; });
  std::erase_if(task.destinations, [](const collective::Target& target) { return target.device % 2 == 1; });
  EXPECT_FALSE(has(candidates(topology, task, 1, {}, {}), Algorithm::kMachines));
}

TEST(Automatic, HintsComeBeforeMachines) {
  const std::vector<std::int32_t> machines = {0, 0, 1, 1};
  CommunicationOptions options;
  options.implementation = Implementation::kRing;
  EXPECT_EQ(rank_on(machines, 2, 10000, options).front().scheme.across, Algorithm::kMachines);
  options.numerics = Numerics::kFast;
  EXPECT_EQ(names_of(rank_on(machines, 2, 10000, options)), (std::set<std::string>{"nccl/xring"}));
  options.implementation = Implementation::kNccl;
  EXPECT_EQ(names_of(rank_on(machines, 2, 10000, options)), (std::set<std::string>{"nccl/nccl"}));
  options.implementation = Implementation::kAuto;
  EXPECT_EQ(names_of(rank_on(machines, 2, 10000, options)), (std::set<std::string>{"nccl/machines"}));
}

TEST(Automatic, SaysThatWorkersShareMachines) {
  const std::string reason = reason_of(rank_on({0, 0, 1, 1}, 2, 1 << 20));
  EXPECT_TRUE(reason.starts_with("workers share machines: ")) << reason;
  EXPECT_NE(reason.find("least crosses the network; nccl/machines"), std::string::npos) << reason;
  EXPECT_EQ(reason_of(rank(4, 2, 1 << 20)).find("machines"), std::string::npos);
}

TEST(Automatic, SaysWhatTheRunnerUpWouldCost) {
  const std::string reason = reason_of(rank(4, 2, 1 << 10));
  EXPECT_NE(reason.find("is predicted to take"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the runner-up"), std::string::npos) << reason;
}

}  // namespace
}  // namespace onesum::planner
