// docs/semantics.md, 1.6, 1.7, 1.9 and 6.4: several workers inside this process.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::expect_error;
using testing::expect_invalid;
using testing::scalar;

const std::vector<std::string> kWorkers{"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"};

std::string name(int task, int index) {
  return "/job:worker/replica:0/task:" + std::to_string(task) + "/device:CPU:" + std::to_string(index);
}

std::vector<Device> devices(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// Replica i holds 2^i, on names[i].
PerReplica powers(const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.push_back(scalar(static_cast<float>(1 << i), names[i]));
  return PerReplica(std::move(tensors));
}

void expect_holds(const Mirrored& result, float number, const std::vector<std::string>& names) {
  EXPECT_EQ(result.devices(), devices(names));
  for (std::size_t d = 0; d < result.size(); ++d)
    EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{number});
}

// 1.6
TEST(Embedded, WorkersHaveRanksAndDevices) {
  const Cluster cluster = Cluster::embedded({"/job:chief", "/job:worker/task:0", "/job:worker/task:1"}, 2);
  EXPECT_EQ(cluster.rank(), 0);
  EXPECT_EQ(cluster.size(), 3);
  std::vector<std::string> names;
  for (const Device& device : cluster.devices()) names.push_back(device.to_string());
  EXPECT_EQ(names, (std::vector<std::string>{"/job:chief/replica:0/task:0/device:CPU:0",
                                             "/job:chief/replica:0/task:0/device:CPU:1", name(0, 0),
                                             name(0, 1), name(1, 0), name(1, 1)}));
  EXPECT_EQ(Cluster::local().size(), 1);
  EXPECT_EQ(Cluster::embedded({"/task:3"}, 1).devices()[0],
            Device("/job:localhost/replica:0/task:3/device:CPU:0"));
}

// 1.11
TEST(Embedded, SomeOfTheWorkers) {
  Cluster cluster = Cluster::embedded(kWorkers, 2);
  Cluster part = cluster.split(std::vector<int>{2, 0});
  EXPECT_EQ(part.size(), 2);
  EXPECT_EQ(part.workers()[0], cluster.workers()[2]);
  EXPECT_EQ(std::vector<Device>(part.devices().begin(), part.devices().end()),
            devices({name(2, 0), name(2, 1), name(0, 0), name(0, 1)}));
  MultiWorkerAllReduce ops({kWorkers[2], kWorkers[0]}, 2, AllReduceSpecs("direct"), 0, 0, 10, part);
  const PerReplica value = powers({name(2, 0), name(0, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, value), 3, {name(2, 0), name(0, 1)});
  const PerReplica elsewhere = powers({name(2, 0), name(1, 0)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, elsewhere, elsewhere); }, {name(1, 0)});
  for (const std::vector<int>& ranks : {std::vector<int>{}, {0, 0}, {3}, {-1}}) {
    expect_invalid([&] { cluster.split(ranks); }, {"split"});
  }
}

TEST(Embedded, TheSameWorkersAgain) {
  Cluster cluster = Cluster::embedded(kWorkers, 1);
  for (Cluster other : {cluster.duplicate(), cluster.shrink()}) {
    EXPECT_EQ(other.size(), 3);
    EXPECT_NE(&other.state(), &cluster.state());  // a sequence of its own
    MultiWorkerAllReduce ops(kWorkers, 1, AllReduceSpecs("direct"), 0, 0, 10, other);
    const PerReplica value = powers({name(0, 0), name(1, 0), name(2, 0)});
    expect_holds(ops.reduce(ReduceOp::kSum, value, value), 7, {name(0, 0), name(1, 0), name(2, 0)});
  }
  Cluster local = Cluster::local({"CPU:0", "CPU:1"});
  EXPECT_EQ(local.duplicate().devices().size(), 2U);
  EXPECT_EQ(local.split(std::vector<int>{0}).size(), 1);
  EXPECT_EQ(local.completed_by_all(), 0U);
}

// 1.6, 8.28
TEST(Embedded, NeedsSoundNumbersAndTypes) {
  expect_invalid([] { Cluster::embedded(kWorkers, 0); }, {"Cluster::embedded", "0 devices"});
  expect_invalid([] { Cluster::embedded(kWorkers, 1 << 30); }, {"3 workers", "1073741824", "65536"});
  expect_invalid([] { Cluster::embedded(kWorkers, 1, "C P U"); }, {"C P U"});
  expect_invalid([] { Cluster::embedded(kWorkers, 1, ""); }, {"device type"});
}

// 1.6
TEST(Embedded, ValuesMayBeOnAnySubsetInAnyOrder) {
  ReductionToOneDevice ops({}, {}, Cluster::embedded(kWorkers, 2));
  const std::vector<std::vector<std::string>> lists = {
      {name(0, 0)},
      {name(2, 1), name(0, 0)},
      {name(1, 0), name(0, 1), name(1, 1), name(0, 0)},
      {name(2, 0), name(1, 1), name(0, 0), name(2, 1), name(1, 0), name(0, 1)},
  };
  for (const auto& from : lists) {
    for (const auto& to : lists) {
      const PerReplica value = powers(from);
      const auto sum = static_cast<float>((1 << from.size()) - 1);
      expect_holds(ops.reduce(ReduceOp::kSum, value, powers(to)), sum, to);
      expect_holds(ops.reduce(ReduceOp::kMean, value, powers(to)), sum / static_cast<float>(from.size()), to);
    }
  }
}

// 1.6, 3.3: component order decides the order of additions, whatever workers the devices belong to.
TEST(Embedded, ReplicasCountInComponentOrder) {
  const Cluster cluster = Cluster::embedded(kWorkers, 2);
  ReductionToOneDevice one({}, {}, cluster);
  MultiWorkerAllReduce direct({kWorkers[0], kWorkers[1]}, 2, "direct");
  const std::vector<std::string> order{name(1, 0), name(0, 1), name(0, 0), name(1, 1)};
  const auto value = [&](std::vector<float> numbers) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < 4; ++i) tensors.push_back(scalar(numbers[i], order[i]));
    return PerReplica(std::move(tensors));
  };
  for (CrossDeviceOps* ops : std::vector<CrossDeviceOps*>{&one, &direct}) {
    const PerReplica a = value({1e8F, -1e8F, 1, 1});  // (1e8 - 1e8) + (1 + 1)
    const PerReplica b = value({1e8F, 1, -1e8F, 1});  // (1e8 + 1) + (-1e8 + 1)
    expect_holds(ops->reduce(ReduceOp::kSum, a, a), 2, order);
    expect_holds(ops->reduce(ReduceOp::kSum, b, b), 0, order);
    const Mirrored gathered =
        ops->gather(PerReplica(std::vector<Tensor>{testing::vector_of<float>({1}, order[0]),
                                                   testing::vector_of<float>({2, 3}, order[1])}),
                    PerReplica(scalar(0.0F, name(1, 1))), 0);
    EXPECT_EQ(contents<float>(gathered), (std::vector<float>{1, 2, 3}));
  }
}

// 1.4: what a value's device leaves open is worker 0's.
TEST(Embedded, PartialDevicesOfValuesAreWorkerZeros) {
  ReductionToOneDevice ops({}, {}, Cluster::embedded({"/job:worker/task:5", "/job:worker/task:3"}, 2));
  const PerReplica value(std::vector<Tensor>{scalar(1.0F, "/task:3"), scalar(2.0F, "CPU:1")});
  expect_holds(ops.reduce(ReduceOp::kSum, value, value), 3, {name(3, 0), name(5, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, scalar(0.0F, "CPU:0")), 3, {name(5, 0)});
}

// 1.7
TEST(Embedded, DestinationTextWithoutTaskIsEveryWorkers) {
  const Cluster cluster = Cluster::embedded({"/job:chief", "/job:worker/task:1", "/job:worker/task:0"}, 2);
  ReductionToOneDevice ops({}, {}, cluster);
  const std::string chief = "/job:chief/replica:0/task:0/device:CPU:1";
  const PerReplica value = powers({name(1, 0), name(0, 0)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, "CPU:1"), 3, {chief, name(1, 1), name(0, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, "/job:worker/CPU:1"), 3, {name(1, 1), name(0, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, "/job:worker/task:0/CPU:1"), 3, {name(0, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, "/task:0/CPU:1"), 3, {chief});
  // The same device as a tensor's is worker 0's alone, also after the text was seen, and the other way round.
  for (int time = 0; time < 2; ++time) {
    expect_holds(ops.reduce(ReduceOp::kSum, value, scalar(0.0F, "CPU:1")), 3, {chief});
    expect_holds(ops.reduce(ReduceOp::kSum, value, "CPU:1"), 3, {chief, name(1, 1), name(0, 1)});
  }
  const std::vector<ValueDestination> pairs{{value, "CPU:0"}, {value, value}, {value, scalar(0.0F, "CPU:0")}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs);
  EXPECT_EQ(results[0].size(), 3U);
  EXPECT_EQ(results[1].devices(), value.devices());
  EXPECT_EQ(results[2].size(), 1U);
  EXPECT_EQ(ops.batch_reduce_async(ReduceOp::kSum, pairs).results()[0].devices(), results[0].devices());
  EXPECT_EQ(ops.gather(testing::vector_of<float>({1}, "CPU:0"), "CPU:0", 0).size(), 3U);
}

// 1.7: text that names the devices of the value is an all-reduce too.
TEST(Embedded, DestinationTextMayNameTheDevicesOfTheValue) {
  MultiWorkerAllReduce ops(kWorkers, 1);
  const PerReplica value = powers({name(1, 0), name(2, 0), name(0, 0)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, "CPU:0"), 7, {name(0, 0), name(1, 0), name(2, 0)});
}

// 6.1
TEST(Embedded, ReduceToDeviceWithoutTaskIsWorkerZeros) {
  const Cluster cluster = Cluster::embedded(kWorkers, 2);
  const PerReplica value = powers({name(1, 0), name(2, 0)});
  const auto reason = [&](const char* device) {
    const ReductionToOneDevice ops(device, {}, cluster);
    return ops.explain(ReduceOp::kSum, testing::one_pair(value, value));
  };
  EXPECT_NE(reason("CPU:1").find(name(0, 1)), std::string::npos) << reason("CPU:1");
  EXPECT_NE(reason("/task:2").find(name(2, 0)), std::string::npos) << reason("/task:2");
  expect_invalid([&] { ReductionToOneDevice("/task:3", {}, cluster); }, {"reduce_to_device", "/task:3"});
  ReductionToOneDevice ops("/task:2", {}, cluster);
  expect_holds(ops.reduce(ReduceOp::kSum, value, value), 3, {name(1, 0), name(2, 0)});
}

// 5.5
TEST(Embedded, BroadcastsFromAnyRoot) {
  MultiWorkerAllReduce ops(kWorkers, 2);
  for (int root = 0; root < 3; ++root) {
    const Tensor value = scalar(static_cast<float>(root), name(root, 1));
    expect_holds(ops.broadcast(value, "CPU:0", root), static_cast<float>(root),
                 {name(0, 0), name(1, 0), name(2, 0)});
    expect_holds(ops.broadcast(value, "/task:1/CPU:1", root), static_cast<float>(root), {name(1, 1)});
  }
  for (const int root : {-1, 3}) {
    expect_invalid([&] { ops.broadcast(scalar(1.0F, name(0, 0)), "CPU:0", root); },
                   {"root " + std::to_string(root), "3 worker"});
  }
}

// 8.6
TEST(Embedded, RefusesDevicesOutside) {
  ReductionToOneDevice ops({}, {}, Cluster::embedded(kWorkers, 2));
  const PerReplica good = powers({name(0, 0), name(1, 0)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, powers({name(0, 0), name(3, 0)}), "CPU:0"); },
                 {"value: replica 1", name(3, 0), "the cluster's workers", "task:2"});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, powers({name(0, 2)}), "CPU:0"); },
                 {"value: replica 0", name(0, 2), "6 devices", name(2, 1)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, good, "CPU:2"); }, {"destination", name(0, 2)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, good, "/job:chief/CPU:0"); },
                 {"destination", "/job:chief"});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, powers({name(1, 0), "/task:1"}), "CPU:0"); },
                 {"two replicas", name(1, 0)});
  expect_error([&] { ops.reduce(ReduceOp::kSum, good, "GPU:0"); }, ErrorCode::kUnavailable, {"GPU:0"});
}

// 1.6: the devices of another type are there by name, and each worker's CPU:0 besides.
TEST(Embedded, HostsAreAlwaysThere) {
  const Cluster cluster = Cluster::embedded(kWorkers, 2, "GPU");
  EXPECT_EQ(cluster.devices().size(), 6U);
  EXPECT_EQ(cluster.devices()[5].to_string(), "/job:worker/replica:0/task:2/device:GPU:1");
  ReductionToOneDevice ops({}, {}, cluster);
  const PerReplica value = powers({name(2, 0), name(0, 0)});
  expect_holds(ops.reduce(ReduceOp::kSum, value, value), 3, {name(2, 0), name(0, 0)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, "CPU:1"); }, {name(0, 1), "6 devices"});
  expect_error([&] { ops.reduce(ReduceOp::kSum, value, "GPU:0"); }, ErrorCode::kUnavailable, {"GPU:0"});
}

// 6.4, 8.30
TEST(MultiWorker, AllReducesNeedAReplicaOnEveryWorker) {
  MultiWorkerAllReduce ops(kWorkers, 2);
  const PerReplica two = powers({name(0, 0), name(2, 0), name(2, 1)});
  const PerReplica all = powers({name(2, 0), name(1, 1), name(0, 0)});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, two, two); },
                 {"value: no replica is on worker 1", "/job:worker/replica:0/task:1", "3 workers"});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, two, powers({name(2, 1), name(0, 0), name(2, 0)})); },
                 {"worker 1"});
  const std::vector<ValueDestination> pairs{{all, all}, {two, "CPU:0"}, {two, two}};
  expect_invalid([&] { ops.batch_reduce(ReduceOp::kSum, pairs); }, {"pair 2: no replica is on worker 1"});
  expect_holds(ops.reduce(ReduceOp::kSum, two, "CPU:1"), 7, {name(0, 1), name(1, 1), name(2, 1)});
  expect_holds(ops.reduce(ReduceOp::kSum, two, "/task:1/CPU:0"), 7, {name(1, 0)});
  expect_holds(ops.reduce(ReduceOp::kSum, all, powers({name(0, 0), name(2, 0), name(1, 1)})), 7,
               {name(0, 0), name(2, 0), name(1, 1)});
}

// 6.4
TEST(MultiWorker, TakesSparseValuesAndVariables) {
  MultiWorkerAllReduce ops({kWorkers[0], kWorkers[1]}, 1);
  const std::vector<Value> components{testing::slices({{1, 2}}, {1}, Shape{5, 2}, name(0, 0)),
                                      testing::slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, name(1, 0))};
  const PerReplica sparse(components);
  const Mirrored sum = ops.reduce(ReduceOp::kSum, sparse, sparse);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(sum.slices(d).values), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(contents<std::int64_t>(sum.slices(d).indices), (std::vector<std::int64_t>{1, 1, 3}));
  }
  MirroredVariable variable("v", scalar(1.0F, name(0, 0)), devices({name(0, 0), name(1, 0)}));
  expect_holds(ops.reduce(ReduceOp::kMean, variable, variable), 1, {name(0, 0), name(1, 0)});
  EXPECT_EQ(contents<float>(variable.components()[1]), std::vector<float>{1});
}

}  // namespace
}  // namespace onesum
