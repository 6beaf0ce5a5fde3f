// Schedules and sums that are known beforehand: who comes after whom, who owns what, in which order is added.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/hierarchical_copy.h"
#include "collective/in_words.h"
#include "collective/numbers.h"
#include "collective/ring.h"
#include "collective/shuffle.h"
#include "collective/sums.h"
#include "plan/cost.h"

namespace onesum::collective {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Devices = std::vector<std::int32_t>;
using Tables = std::vector<Devices>;

Case case_of(Layout layout, const char* scheme, std::uint32_t shards = 1) {
  return {std::move(layout), *scheme_named(scheme, shards)};
}

// Of each shard's ring: the predecessor, and the position, of each device.
struct RingTables {
  Tables predecessors, positions;
};
RingTables ring_tables(const Layout& layout, std::uint32_t shards) {
  const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
  const Level level = level_of_devices(task);
  RingTables tables;
  for (const std::vector<std::size_t>& order : ring_orders(level, layout.topology(), shards)) {
    Devices predecessors(order.size()), positions(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int32_t device = level.parties[order[i]].device;
      const std::size_t before = (i + order.size() - 1) % order.size();
      predecessors[static_cast<std::size_t>(device)] = level.parties[order[before]].device;
      positions[static_cast<std::size_t>(device)] = static_cast<std::int32_t>(i);
    }
    tables.predecessors.push_back(predecessors);
    tables.positions.push_back(positions);
  }
  return tables;
}

void expect_ring(const Layout& layout, std::uint32_t shards, const Tables& predecessors,
                 const Tables& positions) {
  const RingTables found = ring_tables(layout, shards);
  EXPECT_EQ(found.predecessors, predecessors) << layout.name() << " in " << shards;
  EXPECT_EQ(found.positions, positions) << layout.name() << " in " << shards;
}

TEST(RingGolden, PredecessorsAndPositions) {
  expect_ring({1, 1, {}}, 1, {{0}}, {{0}});
  expect_ring({1, 3, {}}, 1, {{2, 0, 1}}, {{0, 1, 2}});
  expect_ring({2, 3, {}}, 1, {{5, 0, 1, 2, 3, 4}}, {{0, 1, 2, 3, 4, 5}});
  expect_ring({3, 3, {}}, 1, {{8, 0, 1, 2, 3, 4, 5, 6, 7}}, {{0, 1, 2, 3, 4, 5, 6, 7, 8}});
  expect_ring({2, 3, {2, 1, 0, 5, 4, 3}}, 1, {{1, 2, 3, 4, 5, 0}}, {{2, 1, 0, 5, 4, 3}});
  expect_ring({1, 4, {}}, 2, {{3, 0, 1, 2}, {3, 0, 1, 2}}, {{0, 1, 2, 3}, {2, 3, 0, 1}});
  expect_ring({1, 4, {}}, 4, Tables(4, Devices{3, 0, 1, 2}),
              {{0, 1, 2, 3}, {3, 0, 1, 2}, {2, 3, 0, 1}, {1, 2, 3, 0}});
  expect_ring({2, 4, {}}, 2, {{7, 0, 1, 2, 3, 4, 5, 6}, {3, 0, 5, 2, 7, 4, 1, 6}},
              {{0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 6, 7, 4, 5}});
  expect_ring({2, 4, {0, 3, 2, 1, 4, 7, 6, 5}}, 2, {{5, 2, 3, 0, 1, 6, 7, 4}, {1, 2, 7, 0, 5, 6, 3, 4}},
              {{0, 3, 2, 1, 4, 7, 6, 5}, {2, 1, 0, 3, 6, 5, 4, 7}});
  // More shards than devices: they take turns.
  expect_ring({1, 2, {}}, 3, Tables(3, Devices{1, 0}), {{0, 1}, {1, 0}, {0, 1}});
  expect_ring({2, 1, {}}, 2, Tables(2, Devices{1, 0}), Tables(2, Devices{0, 1}));
}

TEST(RingGolden, SegmentsAreAddedFromTheNextPositionRound) {
  for (const std::vector<std::string>& result : results_in_words(case_of({4, 1, {}}, "xring").plan())) {
    EXPECT_THAT(result, ElementsAre("(((r1+r2)+r3)+r0)", "(((r2+r3)+r0)+r1)", "(((r3+r0)+r1)+r2)",
                                    "(((r0+r1)+r2)+r3)"));
  }
  const auto rotated = results_in_words(case_of({1, 2, {}}, "xring", 2).plan());
  EXPECT_THAT(rotated.at(0), ElementsAre("(r1+r0)", "(r0+r1)", "(r0+r1)", "(r1+r0)"));
  const auto inside = results_in_words(case_of({1, 3, {}}, "xring/nccl").plan());
  EXPECT_THAT(inside.at(0), ElementsAre("((r1+r2)+r0)", "((r2+r0)+r1)", "((r0+r1)+r2)"));
}

// Which chunk each step that divides writes, and on which device it runs: who owns what.
std::vector<std::pair<std::int32_t, plan::Chunks>> owned_chunks(Case tried) {
  tried.op = ReduceOp::kMean;
  const plan::Plan plan = tried.plan();
  std::vector<std::pair<std::int32_t, plan::Chunks>> owned;
  for (const plan::Lane& lane : plan.lanes) {
    for (const plan::Step& step : lane.steps) {
      if (step.op == plan::Op::kReduce && step.divisor != 1)
        owned.emplace_back(step.device, plan.destinations(step).front().chunks);
    }
  }
  return owned;
}

// The first element of what each device owns, by device.
std::map<std::int32_t, plan::Extent> owned_elements(const Case& tried, std::size_t length) {
  std::map<std::int32_t, plan::Extent> elements;
  for (const auto& [device, chunks] : owned_chunks(tried)) {
    elements[device] = plan::extent_of(tried.plan().packs.at(0).split, length, {}, chunks);
  }
  return elements;
}

// The device that owns each chunk.
Devices owners_of(const Case& tried) {
  std::map<std::uint32_t, std::int32_t> by_chunk;
  for (const auto& [device, chunks] : owned_chunks(tried)) by_chunk[chunks.first] = device;
  Devices owners;
  for (const auto& [chunk, device] : by_chunk) owners.push_back(device);
  return owners;
}

TEST(RingGolden, PositionKOwnsSegmentK) {
  EXPECT_THAT(owners_of(case_of({4, 1, {}}, "xring")), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(owners_of(case_of({1, 4, {}}, "xring", 2)), ElementsAre(0, 1, 2, 3, 2, 3, 0, 1));
}

TEST(HalvingDoublingGolden, OwnersAreReversedBits) {
  const auto four = owned_elements(case_of({4, 1, {}}, "rechd"), 8);
  const std::map<std::int32_t, plan::Extent> expected = {{0, {0, 2}}, {1, {4, 2}}, {2, {2, 2}}, {3, {6, 2}}};
  EXPECT_EQ(four, expected);
  EXPECT_THAT(owners_of(case_of({8, 1, {}}, "rechd")), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  // Those beyond the power of two own nothing in the end.
  EXPECT_THAT(owners_of(case_of({7, 1, {}}, "rechd")), ElementsAre(0, 2, 1, 3));
}

TEST(HalvingDoublingGolden, EveryPieceIsTheSameTree) {
  for (const auto& result : results_in_words(case_of({8, 1, {}}, "rechd").plan())) {
    EXPECT_THAT(result, Each("(((r0+r1)+(r2+r3))+((r4+r5)+(r6+r7)))"));
  }
  for (const auto& result : results_in_words(case_of({5, 1, {}}, "rechd").plan())) {
    EXPECT_THAT(result, Each("(((r0+r1)+(r2+r3))+r4)"));
  }
}

// Messages, and the longest way of one after the other.
TEST(DoublingGolden, SendsTheFewestMessages) {
  const auto cost_of = [](std::int32_t workers, const char* scheme) {
    return plan::cost(case_of({workers, 1, {}}, scheme).plan(), {{1}, {{}}});
  };
  for (const auto& [workers, messages] : {std::pair{2, 2}, {4, 8}, {8, 24}, {16, 64}}) {
    EXPECT_EQ(cost_of(workers, "doubling").messages, static_cast<std::size_t>(messages)) << workers;
  }
  // Those beyond the power of two among themselves, to all others, and a result for each.
  EXPECT_EQ(cost_of(3, "doubling").messages, 2U + 2 + 1);
  EXPECT_EQ(cost_of(7, "doubling").messages, 8U + 2 + 2 + 4 + 3);
  EXPECT_LT(cost_of(8, "doubling").messages, cost_of(8, "rechd").messages);
}

TEST(DoublingGolden, EveryoneAddsTheSameTree) {
  for (const auto& result : results_in_words(case_of({8, 1, {}}, "doubling").plan())) {
    EXPECT_THAT(result, Each("(((r0+r1)+(r2+r3))+((r4+r5)+(r6+r7)))"));
  }
  for (const auto& result : results_in_words(case_of({7, 1, {}}, "doubling").plan())) {
    EXPECT_THAT(result, Each("(((r0+r1)+(r2+r3))+((r4+r5)+r6))"));
  }
}

TEST(HierarchicalCopyGolden, RootsRotate) {
  const auto roots = [](std::size_t parties, std::size_t packs) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t pack = 0; pack < packs; ++pack) {
      const Roots found = roots_of(parties, pack);
      all.emplace_back(found.first, found.second);
    }
    return all;
  };
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(roots(8, 9), (Pairs{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {4, 0}, {5, 1}, {6, 2}, {7, 3}, {0, 4}}));
  EXPECT_EQ(roots(2, 3), (Pairs{{0, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(roots(1, 2), (Pairs{{0, 0}, {0, 0}}));
  EXPECT_EQ(roots(3, 3), (Pairs{{0, 2}, {1, 2}, {2, 0}}));
  EXPECT_EQ(roots(6, 6), (Pairs{{0, 4}, {1, 5}, {2, 4}, {3, 5}, {4, 0}, {5, 1}}));
}

// Results for replicas that hold one number each in all of `elements` elements.
std::vector<float> sum_of_floats(const Case& tried, const std::vector<float>& values, std::size_t elements) {
  std::vector<plan::Bytes> replicas;
  for (const float value : values) {
    replicas.push_back(bytes_of_floats(std::vector<float>(elements, value)));
  }
  return floats_of_bytes(simulated_result(tried, replicas));
}

TEST(HierarchicalCopyGolden, LosesNoneOfThreeDevices) {
  for (std::size_t number = 0; number < 3; ++number) {
    for (const Layout& layout : {Layout{1, 3, {}}, Layout{3, 1, {}}}) {
      Case tried = case_of(layout, "hierarchical_copy");
      tried.scheme.number = number;
      EXPECT_THAT(sum_of_floats(tried, {1, 2, 4}, 5), Each(7.0F));
    }
  }
}

TEST(ShuffleGolden, GroupsOfOwners) {
  const auto groups = [](std::int32_t devices, std::size_t size, std::size_t count) {
    Devices all;
    for (std::int32_t d = 0; d < devices; ++d) all.push_back(d);
    Tables found;
    for (std::size_t pack = 0; pack < count; ++pack) found.push_back(owner_group(all, size, pack));
    return found;
  };
  EXPECT_EQ(groups(4, 2, 3), (Tables{{0, 2}, {1, 3}, {0, 2}}));
  EXPECT_EQ(groups(3, 2, 2), (Tables{{0, 2}, {1, 0}}));
  EXPECT_EQ(groups(5, 2, 4), (Tables{{0, 3}, {1, 4}, {2, 0}, {0, 3}}));
  EXPECT_EQ(groups(5, 3, 2), (Tables{{0, 2, 4}, {1, 3, 0}}));
  EXPECT_EQ(groups(8, 4, 2), (Tables{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(groups(2, 2, 2), (Tables{{0, 1}, {0, 1}}));
  EXPECT_EQ(groups(1, 2, 2), (Tables{{0, 0}, {0, 0}}));
  EXPECT_EQ(groups(2, 5, 1), (Tables{{0, 1, 0, 1, 0}}));
}

TEST(ShuffleGolden, OwnersOfPacks) {
  const auto owners = [](Case tried, std::size_t number) {
    tried.scheme.number = number;
    return owners_of(tried);
  };
  // CPUs of three workers with two devices each are devices 6, 7 and 8.
  const Case hosts = case_of({3, 2, {}, true}, "pscpu", 2);
  EXPECT_THAT(owners(hosts, 0), ElementsAre(6, 8));
  EXPECT_THAT(owners(hosts, 1), ElementsAre(7, 6));
  EXPECT_THAT(owners(hosts, 2), ElementsAre(6, 8));
  const plan::Split split = hosts.plan().packs.at(0).split;
  EXPECT_EQ(plan::extent_of(split, 5, {}, {0, 1}), (plan::Extent{0, 2}));
  EXPECT_EQ(plan::extent_of(split, 5, {}, {1, 1}), (plan::Extent{2, 3}));
  // The first device of every worker, then the second of every worker: each group is inside one worker.
  const Case devices = case_of({2, 2, {}}, "psgpu", 2);
  EXPECT_THAT(owners(devices, 0), ElementsAre(0, 1));
  EXPECT_THAT(owners(devices, 1), ElementsAre(2, 3));
  // The second level of a hierarchy has the same owners for every pack.
  const Case hierarchy = case_of({3, 2, {}, true}, "pscpu/pscpu", 2);
  EXPECT_THAT(owners(hierarchy, 0), ElementsAre(6, 8));
  EXPECT_THAT(owners(hierarchy, 1), ElementsAre(6, 8));
  EXPECT_THAT(owners(case_of({1, 2, {}, true}, "pscpu/pscpu", 2), 0), ElementsAre(2, 2));
  EXPECT_THAT(owners(case_of({3, 1, {}}, "direct"), 4), ElementsAre(0, 1, 2));
}

TEST(SumGolden, OrderOfAdditions) {
  const std::vector<float> three = {1e8F, 1, -1e8F};
  EXPECT_THAT(sum_of_floats(case_of({1, 3, {}}, "xring"), three, 3), ElementsAre(0, 1, 0));
  EXPECT_THAT(sum_of_floats(case_of({3, 1, {}}, "nccl/xring"), three, 3), ElementsAre(0, 1, 0));
  const std::vector<float> four = {1e8F, 1, -1e8F, 1};
  EXPECT_THAT(sum_of_floats(case_of({4, 1, {}}, "xring"), four, 4), ElementsAre(0, 1, 0, 1));
  for (const Scheme& scheme : all_schemes()) {
    if (has_ring(scheme)) continue;
    EXPECT_THAT(sum_of_floats({{3, 1, {}}, scheme}, three, 3), Each(0.0F)) << to_string(scheme);
    EXPECT_THAT(sum_of_floats({{2, 2, {}}, scheme}, four, 4), Each(0.0F)) << to_string(scheme);
    EXPECT_THAT(sum_of_floats({{2, 2, {}}, scheme}, {1e8F, -1e8F, 1, 1}, 4), Each(2.0F)) << to_string(scheme);
  }
  Case copies = case_of({1, 4, {}}, "hierarchical_copy");
  for (copies.scheme.number = 0; copies.scheme.number < 4; ++copies.scheme.number) {
    EXPECT_THAT(sum_of_floats(copies, four, 4), Each(0.0F));
    EXPECT_THAT(sum_of_floats(copies, {1e8F, -1e8F, 1, 1}, 4), Each(2.0F));
  }
}

TEST(SumGolden, WithFastNumericsEveryWorkerBringsOneSum) {
  Case tried = case_of({2, 3, {}}, "nccl/direct");
  EXPECT_THAT(results_in_words(tried.plan()).at(0), Each("(((r0+r1)+(r2+r3))+(r4+r5))"));
  tried.scheme.fast = true;
  EXPECT_THAT(results_in_words(tried.plan()).at(0), Each("(((r0+r1)+r2)+((r3+r4)+r5))"));
}

// Replica d holds i + 0.01 d in element i; workers, devices, elements and shards as TensorFlow tests them.
TEST(SumGolden, TensorFlowsCases) {
  struct Row {
    const char* scheme;
    std::int32_t workers, devices;
    std::size_t elements;
    std::uint32_t shards;
  };
  const std::vector<Row> rows = {
      {"xring", 1, 2, 1, 1},   {"xring", 1, 2, 8, 1},   {"xring", 1, 2, 16, 1},  {"xring", 6, 1, 8, 1},
      {"xring", 1, 8, 32, 1},  {"xring", 1, 8, 120, 1}, {"xring", 2, 8, 91, 1},  {"xring", 2, 8, 64, 2},
      {"xring", 2, 8, 64, 4},  {"xring", 4, 8, 128, 4}, {"psgpu", 1, 2, 1, 1},   {"psgpu", 1, 2, 8, 1},
      {"psgpu", 1, 2, 16, 1},  {"psgpu", 1, 8, 32, 1},  {"psgpu", 1, 8, 120, 1}, {"psgpu", 2, 8, 91, 3},
      {"psgpu", 2, 8, 64, 2},  {"psgpu", 2, 8, 64, 4},  {"psgpu", 4, 8, 128, 4}, {"rechd", 1, 2, 8, 1},
      {"rechd", 1, 2, 16, 1},  {"rechd", 1, 8, 32, 1},  {"rechd", 1, 8, 120, 1}, {"rechd", 2, 8, 64, 1},
      {"rechd", 4, 8, 128, 1},
  };
  for (const Row& row : rows) {
    Case tried = case_of({row.workers, row.devices, {}}, row.scheme, row.shards);
    tried.op = ReduceOp::kMean;
    SCOPED_TRACE(tried.name());
    const auto n = static_cast<std::size_t>(tried.layout.num_replicas());
    std::vector<plan::Bytes> replicas;
    for (std::size_t d = 0; d < n; ++d) {
      std::vector<float> values;
      for (std::size_t i = 0; i < row.elements; ++i) {
        values.push_back(static_cast<float>(i) + 0.01F * static_cast<float>(d));
      }
      replicas.push_back(bytes_of_floats(values));
    }
    const std::vector<float> found = floats_of_bytes(simulated_result(tried, replicas));
    ASSERT_EQ(found.size(), row.elements);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], static_cast<float>(i) + 0.005F * static_cast<float>(n - 1), 1e-4);
    }
  }
}

constexpr std::size_t kElements = 840 * 6;  // divisible by whatever it is cut into
constexpr std::uint64_t kBytes = kElements * sizeof(float);

plan::Cost cost_of(const Case& tried) { return plan::cost(tried.plan(), {{kElements}, {{}}}); }

std::vector<std::uint64_t> bytes_sent(const Case& tried) {
  std::vector<std::uint64_t> bytes;
  for (const plan::DeviceCost& device : cost_of(tried).devices) bytes.push_back(device.bytes_sent);
  return bytes;
}

TEST(CostGolden, EveryDeviceSendsTheLeastThereCanBe) {
  for (const std::int32_t n : {2, 3, 4, 5, 6, 7, 8}) {
    const auto count = static_cast<std::uint64_t>(n);
    const std::uint64_t least = 2 * (count - 1) * kBytes / count;
    for (const char* scheme : {"xring", "nccl/xring", "direct", "nccl/direct", "rechd", "nccl/rechd"}) {
      const Case tried = case_of({n, 1, {}}, scheme);
      SCOPED_TRACE(tried.name());
      EXPECT_EQ(cost_of(tried).total.bytes_sent, 2 * (count - 1) * kBytes);
      const bool is_even = tried.scheme.across != Algorithm::kHalvingDoubling || (count & (count - 1)) == 0;
      if (is_even) {
        EXPECT_THAT(bytes_sent(tried), Each(least));
      }
    }
    EXPECT_EQ(cost_of(case_of({n, 1, {}}, "xring")).messages, 2 * count * (count - 1));
    EXPECT_EQ(cost_of(case_of({n, 1, {}}, "hierarchical_copy")).total.bytes_sent, (2 * count - 2) * kBytes);
  }
  EXPECT_THAT(bytes_sent(case_of({4, 1, {}}, "xring", 3)), Each(3 * kBytes / 2));
}

TEST(CostGolden, ShufflesSendWhatCrossesWorkers) {
  // Four workers of two devices and a CPU: devices 0 to 7, CPUs 8 to 11; CPUs 8 and 10 own a half each.
  const std::vector<std::uint64_t> alone = bytes_sent(case_of({4, 2, {}, true}, "pscpu", 2));
  const std::uint64_t half = kBytes / 2;
  EXPECT_THAT(alone,
              ElementsAre(half, half, kBytes, kBytes, half, half, kBytes, kBytes, 3 * half, 0, 3 * half, 0));
  // In a hierarchy the CPUs send one sum of each worker; a device sends nothing.
  const std::vector<std::uint64_t> hierarchy = bytes_sent(case_of({4, 2, {}, true}, "pscpu/pscpu", 2));
  EXPECT_THAT(hierarchy,
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, half + 3 * half, kBytes, half + 3 * half, kBytes));
}

TEST(CostGolden, OneWorkerSendsNothingButFromHopToHop) {
  for (const Scheme& scheme : all_schemes()) {
    const bool has_hops = scheme.across == Algorithm::kRing || scheme.across == Algorithm::kHalvingDoubling ||
                          scheme.across == Algorithm::kDoubling;
    const bool has_messages = !scheme.inside && has_hops;
    EXPECT_EQ(cost_of({{1, 4, {}}, scheme}).total.bytes_sent > 0, has_messages) << to_string(scheme);
  }
}

}  // namespace
}  // namespace onesum::collective
