// Packs and plans: what shares a pack, and which plans are kept.
#include "planner/planner.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plan/verify.h"
#include "planner/pack.h"
#include "planner/select.h"
#include "support/expect_error.h"

namespace onesum::planner {
namespace {

Placement own_process() { return {Device().canonical(), {}}; }

PairInfo pair_of(DType dtype, const Shape& shape, const std::vector<Device>& replicas,
                 const std::vector<Device>& destinations) {
  PairInfo pair;
  for (const Device& device : replicas) pair.replicas.push_back({{dtype, shape, device}, {}, {}});
  pair.destinations = destinations;
  return pair;
}

const std::vector<Device> kTwo{"CPU:0", "CPU:1"};

Request batch(std::vector<PairInfo> pairs, ReduceOp op = ReduceOp::kSum) {
  Request request;
  request.op = op;
  request.pairs = std::move(pairs);
  return request;
}

std::vector<PackOfStreams> packs_of(const Request& request, bool by_function = false) {
  Policy policy;
  policy.has_accumulation_fn = by_function;
  return pack_streams(resolve(request, own_process()).streams, request.kind, policy, 0);
}

TEST(Packs, GroupByTypeAndKeepTheOrder) {
  const Request request =
      batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo), pair_of(DType::kInt8, {5}, kTwo, kTwo),
             pair_of(DType::kFloat32, {7, 2}, kTwo, kTwo), pair_of(DType::kInt8, {0}, kTwo, kTwo),
             pair_of(DType::kFloat32, {}, kTwo, kTwo)});
  const std::vector<PackOfStreams> packs = packs_of(request);
  ASSERT_EQ(packs.size(), 2U);
  EXPECT_EQ(packs[0].streams, (std::vector<std::size_t>{0, 2, 4}));
  EXPECT_EQ(packs[1].streams, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(packs[0].table.elements(), 3U + 14 + 1);
  ASSERT_EQ(packs[0].table.members.size(), 3U);
  EXPECT_EQ(packs[0].table.members[1].elements, 14U);
  // Four slots a stream: its two replicas, then its two results.
  EXPECT_EQ(packs[0].table.members[1].first_input, 8U);
  EXPECT_EQ(packs[0].table.members[1].first_output, 10U);
  EXPECT_EQ(packs[1].table.members[0].first_input, 4U);
  EXPECT_EQ(count_slots(resolve(request, own_process()).streams), 20U);
}

TEST(Packs, DifferInDevicesOrderAndPlace) {
  const std::vector<Device> swapped{"CPU:1", "CPU:0"};
  const Request request =
      batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo), pair_of(DType::kFloat32, {3}, swapped, kTwo),
             pair_of(DType::kFloat32, {3}, kTwo, swapped), pair_of(DType::kFloat32, {3}, kTwo, {"CPU:0"}),
             pair_of(DType::kFloat32, {9}, kTwo, kTwo)});
  EXPECT_EQ(packs_of(request).size(), 4U);
  Request into =
      batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo), pair_of(DType::kFloat32, {3}, kTwo, kTwo)});
  into.into = true;
  for (PairInfo& pair : into.pairs) pair.results = pair.replicas;
  into.pairs[0].in_place_of = {0, 1};
  into.pairs[1].in_place_of = {0, -1};
  EXPECT_EQ(packs_of(into).size(), 2U);
}

TEST(Packs, OfAUsersFunctionAndOfConcatenationsStayAlone) {
  const Request request =
      batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo), pair_of(DType::kFloat32, {3}, kTwo, kTwo)});
  EXPECT_EQ(packs_of(request).size(), 1U);
  EXPECT_EQ(packs_of(request, true).size(), 2U);
  Request gather = request;
  gather.kind = CallKind::kGather;
  const std::vector<PackOfStreams> packs = packs_of(gather);
  ASSERT_EQ(packs.size(), 2U);
  EXPECT_EQ(packs[0].table.counts, (std::vector<std::size_t>{3, 3}));
  EXPECT_EQ(packs[0].table.elements(), 6U);
}

TEST(Packs, OfRowsCountWhatEachRowGets) {
  Request gather = batch({pair_of(DType::kFloat32, {4, 3}, kTwo, kTwo)});
  gather.kind = CallKind::kGather;
  gather.axis = 1;
  gather.pairs[0].replicas[1].tensor.shape = Shape{4, 5};
  const std::vector<PackOfStreams> packs = packs_of(gather);
  EXPECT_EQ(packs[0].table.outer, 4U);
  EXPECT_EQ(packs[0].table.counts, (std::vector<std::size_t>{3, 5}));
  gather.pairs[0].replicas[0].tensor.shape = Shape{0, 3};
  gather.pairs[0].replicas[1].tensor.shape = Shape{0, 5};
  EXPECT_EQ(packs_of(gather)[0].table.counts, (std::vector<std::size_t>{0, 0}));
}

TEST(Planner, KeepsPlansWhateverTheSizes) {
  Planner planner({"Test", {}, false}, own_process());
  const Request small = batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo)});
  const Planned first = planner.plan(small);
  EXPECT_EQ(planner.plan(small).plan, first.plan);
  const Planned large = planner.plan(
      batch({pair_of(DType::kFloat32, {70, 80}, kTwo, kTwo), pair_of(DType::kFloat32, {1}, kTwo, kTwo)}));
  EXPECT_EQ(large.plan, first.plan);  // one pack of the same kind
  EXPECT_EQ(large.tables.at(0).elements(), 5601U);
}

TEST(Planner, MakesAnotherPlanForWhatShapesIt) {
  Planner planner({"Test", {}, false}, own_process());
  const Planned first = planner.plan(batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo)}));
  const auto differs = [&](const Request& request) { return planner.plan(request).plan != first.plan; };
  EXPECT_TRUE(differs(batch({pair_of(DType::kFloat64, {3}, kTwo, kTwo)})));
  EXPECT_TRUE(differs(batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo)}, ReduceOp::kMean)));
  EXPECT_TRUE(differs(batch({pair_of(DType::kFloat32, {3}, kTwo, {"CPU:1", "CPU:0"})})));
  EXPECT_TRUE(differs(batch({pair_of(DType::kFloat32, {3}, kTwo, {"CPU:0"})})));
  // Plans number their devices; which ones they are is beside the plan.
  EXPECT_FALSE(differs(batch({pair_of(DType::kFloat32, {3}, {"CPU:0", "CPU:2"}, {"CPU:0", "CPU:2"})})));
  EXPECT_TRUE(
      differs(batch({pair_of(DType::kFloat32, {3}, kTwo, kTwo), pair_of(DType::kInt8, {3}, kTwo, kTwo)})));
}

TEST(Planner, SaysWhere) {
  const Request request = batch({pair_of(DType::kFloat32, {3}, kTwo, {"CPU:5", "CPU:1"})});
  Planner free({"Test", {}, false}, own_process());
  const Planned on_first = free.plan(request);
  EXPECT_NE(on_first.choices.at(0).reason.find("CPU:5"), std::string::npos) << on_first.choices[0].reason;
  Planner fixed({"Test", Device("CPU:9").canonical(), false}, own_process());
  const Planned on_fixed = fixed.plan(request);
  EXPECT_EQ(on_fixed.devices.back().to_string(), Device("CPU:9").canonical().to_string());
  EXPECT_EQ(on_fixed.plan->lanes.at(0).steps.at(0).device,
            static_cast<std::int32_t>(on_fixed.devices.size() - 1));
  EXPECT_NE(on_fixed.choices.at(0).reason.find("reduce_to_device"), std::string::npos);
}

TEST(Planner, GivesAProvedPlanForBatchesOfManyKinds) {
  Planner planner({"Test", {}, false}, own_process());
  std::vector<PairInfo> pairs;
  for (int i = 0; i < 100; ++i) {
    const auto dtype = static_cast<DType>(1 + i % (kNumDTypes - 1));
    pairs.push_back(pair_of(dtype, {i}, i % 2 == 0 ? kTwo : std::vector<Device>{"CPU:3", "CPU:1", "CPU:2"},
                            i % 3 == 0 ? kTwo : std::vector<Device>{"CPU:1"}));
  }
  const Planned planned = planner.plan(batch(pairs, ReduceOp::kMean));
  EXPECT_NO_THROW(plan::verify(*planned.plan));
  EXPECT_EQ(planned.plan->packs.size(), planned.tables.size());
  std::vector<bool> seen(100, false);
  for (const std::vector<std::size_t>& streams : planned.pack_streams) {
    EXPECT_TRUE(std::is_sorted(streams.begin(), streams.end()));
    for (const std::size_t stream : streams) {
      EXPECT_FALSE(seen[stream]);
      seen[stream] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 100);
}

TEST(Planner, ForgetsPlansRatherThanGrowForEver) {
  Planner planner({"Test", {}, false}, own_process());
  for (int i = 0; i < 600; ++i) {
    const std::string device = "CPU:" + std::to_string(i);
    const Planned planned = planner.plan(batch({pair_of(DType::kFloat32, {3}, kTwo, {Device(device)})}));
    ASSERT_EQ(planned.devices.back().index(), i == 0 ? 1 : i == 1 ? 1 : i);
  }
}

TEST(Planner, IsSharedByThreads) {
  Planner planner({"Test", {}, false}, own_process());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto dtype = static_cast<DType>(1 + i % (kNumDTypes - 1));
        const Planned planned = planner.plan(batch({pair_of(dtype, {i}, kTwo, kTwo)}));
        ASSERT_EQ(planned.plan->packs.at(0).output, element_of(dtype));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Planner, RefusesNothing) {
  Planner planner({"Test", {}, false}, own_process());
  testing::expect_invalid([&] { planner.plan(Request()); }, {"no pairs"});
}

}  // namespace
}  // namespace onesum::planner
