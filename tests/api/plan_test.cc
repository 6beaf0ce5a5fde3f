// docs/semantics.md, 5.10. What a call would do, why, and what the last one did.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "api/study.h"
#include "plan/text.h"
#include "plan/verify.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::cpus;
using testing::scalars;

std::vector<Device> devices(std::size_t count) {
  const std::vector<std::string> names = cpus(count);
  return {names.begin(), names.end()};
}

TEST(PlanOfACall, IsProvedAndCanonical) {
  ReductionToOneDevice ops;
  for (const std::size_t n : {1U, 2U, 3U, 8U, 33U}) {
    const std::vector<ReduceSpec> specs{{DType::kFloat16, Shape{100}, devices(n), devices(2)}};
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const Plan plan = ops.plan(op, specs);
      plan.verify();
      EXPECT_EQ(plan.algorithm(), "one_device");
      EXPECT_EQ(plan.order(), "canonical");
      EXPECT_EQ(plan.pack_elements(), std::vector<std::size_t>{100});
      EXPECT_TRUE(plan::verify(plan.value()).packs.at(0).canonical);
      EXPECT_EQ(plan::parse_text(plan.to_text()), plan.value());
    }
  }
}

TEST(PlanOfACall, NamesItsDevices) {
  ReductionToOneDevice ops("CPU:9");
  const std::vector<ValueDestination> pairs = testing::one_pair(scalars<float>({1, 2}), "CPU:4");
  const std::vector<Device> expected{Device(testing::full_name(0)), Device(testing::full_name(1)),
                                     Device(testing::full_name(4)), Device(testing::full_name(9))};
  EXPECT_EQ(ops.plan(ReduceOp::kSum, pairs).devices(), expected);
}

TEST(PlanOfACall, IsInPlaceWhereDevicesAreEqualHoweverTheyAreSpelt) {
  ReductionToOneDevice ops;
  const auto roles = [&](const std::vector<Device>& destinations, bool in_place) {
    const std::vector<ReduceSpec> specs{{DType::kFloat32, Shape{8}, devices(2), destinations}};
    std::string text;
    for (const plan::Buffer& buffer : ops.plan(ReduceOp::kSum, specs, in_place).value().buffers) {
      text += buffer.role == plan::Role::kInOut ? 'b' : buffer.role == plan::Role::kInput ? 'i' : 'o';
    }
    return text;
  };
  EXPECT_EQ(roles(devices(2), false), "iioo");
  EXPECT_EQ(roles(devices(2), true), "bb");
  EXPECT_EQ(roles({Device(testing::full_name(1)), Device("/cpu:0")}, true), "bb");
  EXPECT_EQ(roles({Device("CPU:1"), Device("CPU:5")}, true), "ibo");
}

TEST(PlanOfACall, GroupsWhatIsAlike) {
  ReductionToOneDevice ops;
  const std::vector<ValueDestination> pairs{{scalars<float>({1, 2}), "CPU:0"},
                                            {scalars<double>({1, 2}), "CPU:0"},
                                            {testing::vectors<float>({{1, 2, 3}, {4, 5, 6}}), "CPU:0"},
                                            {scalars<float>({1, 2}), "CPU:1"}};
  const Plan plan = ops.plan(ReduceOp::kSum, pairs);
  plan.verify();
  EXPECT_EQ(plan.pack_elements(), (std::vector<std::size_t>{4, 1, 1}));
}

// 6.5: packs take turns over the devices that sum them.
TEST(PlanOfACall, SpreadsPacksOverTheWorkers) {
  MultiWorkerAllReduce ops({"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"}, 1, "psgpu");
  const std::vector<Device> all(ops.cluster().devices().begin(), ops.cluster().devices().end());
  const std::vector<ReduceSpec> specs(6, {DType::kFloat32, Shape{5}, all, all});
  const Plan plan = ops.plan(ReduceOp::kSum, specs);
  std::vector<int> sums(3, 0);
  for (const plan::Lane& lane : plan.value().lanes) {
    for (const plan::Step& step : lane.steps) {
      if (step.op == plan::Op::kReduce) ++sums.at(static_cast<std::size_t>(step.device));
    }
  }
  EXPECT_EQ(sums, (std::vector<int>{2, 2, 2}));
}

TEST(PlanOfACall, OfMixedComponentsIsThatOfADenseValue) {
  ReductionToOneDevice ops;
  const PerReplica mixed(std::vector<Value>{Tensor::from<float>({1, 2, 3}, {3, 1}, "CPU:0"),
                                            testing::slices({{10}}, {2}, Shape{3, 1}, "CPU:1")});
  const std::vector<ValueDestination> pairs = testing::one_pair(mixed, mixed);
  const Plan plan = ops.plan(ReduceOp::kMean, pairs);
  plan.verify();
  EXPECT_EQ(plan.pack_elements(), std::vector<std::size_t>{3});
  EXPECT_NE(ops.explain(ReduceOp::kMean, pairs).find("1 pack"), std::string::npos);
}

TEST(PlanOfACall, OfSlicesIsProvedForEveryLength) {
  ReductionToOneDevice ops;
  const PerReplica sparse(
      {testing::slices({{1}}, {0}, {}, "CPU:0"), testing::slices({{2}, {3}}, {0, 1}, {}, "CPU:1")});
  const Plan plan = ops.plan(ReduceOp::kMean, testing::one_pair(sparse, sparse));
  plan.verify();
  EXPECT_EQ(plan.pack_elements(), (std::vector<std::size_t>{3, 3}));
}

// GPU:0 of one worker is GPU:0 of the other where both are in this process: no native collective has a GPU
// twice.
TEST(PlanOfACall, WorkersOfOneProcessShareGpus) {
  const std::vector<std::string> workers = {"/job:worker/task:0", "/job:worker/task:1"};
  const Cluster cluster = Cluster::embedded(workers, 2, "GPU");
  MultiWorkerAllReduce ops(workers, 2, "nccl", 0, 0, 10, cluster);
  const std::vector<Device> gpus(cluster.devices().begin(), cluster.devices().end());
  const std::vector<ReduceSpec> specs = {{DType::kFloat32, Shape{10}, gpus, gpus}};
  EXPECT_EQ(ops.plan(ReduceOp::kSum, specs).order(), "canonical");
}

// A plan needs no engine; a call does.
TEST(PlanOfACall, MayBeOnGpus) {
  const std::vector<std::string> workers = {"/job:worker/task:0", "/job:worker/task:1"};
  const Cluster cluster = api::embedded_on_machines(workers, 2, "GPU", 1);
  MultiWorkerAllReduce ops(workers, 2, "nccl#2:64:nccl/xring#2:4k:pscpu/pscpu", 0, 0, 10, cluster);
  const std::vector<Device> gpus(cluster.devices().begin(), cluster.devices().end());
  std::vector<ReduceSpec> specs;
  for (const std::int64_t elements : {2000, 10, 500, 12, 501}) {
    specs.push_back({DType::kFloat32, Shape{elements}, gpus, gpus});
  }
  const Plan plan = ops.plan(ReduceOp::kMean, specs);
  plan.verify();
  EXPECT_EQ(plan.order(), "canonical + native + ring over workers' native sums");
  EXPECT_EQ(plan::parse_text(plan.to_text()), plan.value());
  EXPECT_NE(ops.explain(ReduceOp::kSum, specs, false).find("native collectives: "), std::string::npos);
  std::vector<float> memory(4);
  std::vector<Value> replicas;
  for (const Device& gpu : gpus) {
    replicas.emplace_back(Tensor::borrow(&memory[replicas.size()], DType::kFloat32, {1}, gpu));
  }
  testing::expect_error([&] { ops.reduce(ReduceOp::kSum, PerReplica(replicas), "GPU:0"); },
                        ErrorCode::kUnavailable, {"GPU:0"});
}

TEST(PlanOfACall, ChangesNothing) {
  ReductionToOneDevice ops;
  const PerReplica value = scalars<float>({1, 2});
  ops.plan(ReduceOp::kSum, testing::one_pair(value, value));
  ops.explain(ReduceOp::kSum, testing::one_pair(value, value));
  EXPECT_EQ(testing::contents<float>(value.tensor(0)), std::vector<float>{1});
  EXPECT_EQ(ops.last_call().number, 0U);
}

TEST(Explain, SaysWhatAndWhy) {
  ReductionToOneDevice ops("CPU:1");
  const std::vector<ValueDestination> pairs{{scalars<std::int8_t>({1, 2}), "CPU:0"},
                                            {scalars<float>({1, 2}), "CPU:0"}};
  const std::string text = ops.explain(ReduceOp::kMean, pairs);
  for (const char* part :
       {"2 tensors in 2 packs on 2 devices of 1 worker", "canonical", "one_device", "reduce_to_device",
        "CPU:1", "int8", "summed in int64", "results in float32", "lower bound: 6 B", "lower bound: 12 B"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

// What was taken by which spec, packed how and added in which order; and the same without memory.
TEST(Explain, SaysHowABatchIsAllReducedOverWorkers) {
  const std::vector<std::string> workers{"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"};
  MultiWorkerAllReduce ops(workers, 3, "xring:64:nccl/direct#2", 1);
  std::vector<Device> all(ops.cluster().devices().begin(), ops.cluster().devices().end());
  const std::vector<ReduceSpec> specs{{DType::kFloat32, Shape{16}, all, all},
                                      {DType::kFloat32, Shape{1000}, all, all},
                                      {DType::kFloat32, Shape{4000}, all, all}};
  const std::string text = ops.explain(ReduceOp::kSum, specs, false);
  for (const char* part :
       {"3 tensors in 2 packs on 9 devices of 3 workers",
        "spec 0 (xring, 1 shard, tensors of up to 64 bytes) takes 1 tensor, 64 B\n",
        "spec 1 (nccl/direct, 2 shards, no limit) takes 2 tensors, 19.5 KiB\n",
        "pack 1: 2 tensors, 5000 elements (19.5 KiB)\n", "not the canonical one, which a ring cannot keep",
        "up to 2 subtrees", "predicted time: ", "no plan takes less than "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  CommunicationOptions fast;
  fast.numerics = Numerics::kFast;
  EXPECT_EQ(ops.explain(ReduceOp::kSum, specs, false, fast).find("subtrees"), std::string::npos);
}

// Packs that differ in nothing but their sizes share a paragraph; a type, a spec or a reason makes another.
TEST(Explain, GroupsPacksThatAreAlike) {
  const std::vector<std::string> workers{"/job:worker/task:0", "/job:worker/task:1"};
  MultiWorkerAllReduce ops(workers, 1, "rechd:64:direct#2");
  const std::vector<Device> all(ops.cluster().devices().begin(), ops.cluster().devices().end());
  std::vector<ReduceSpec> specs;
  for (const std::int64_t elements : {3, 16, 1000, 5, 300}) {
    specs.push_back({DType::kFloat32, Shape{elements}, all, all});
    specs.push_back({DType::kFloat16, Shape{1}, all, all});
  }
  const std::string text = ops.explain(ReduceOp::kSum, specs, false);
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\npack"), 3U) << text;
  EXPECT_EQ(count("  algorithm: "), 3U) << text;
  for (const char* part :
       {"packs 0 to 2: 1 tensor each, 3 to 16 elements (12 B to 64 B)\n  float32, from 2 replicas to 2 "
        "destinations, cut into 2 chunks\n  algorithm: rechd: spec 0 (rechd, up to 64 bytes)\n",
        "packs 3 to 7: 1 tensor each, 1 element (2 B)\n  float16, summed in float32, from 2",
        "packs 8 to 9: 1 tensor each, 300 to 1000 elements (1.17 KiB to 3.91 KiB)\n",
        "  algorithm: direct#2: spec 1",
        "  lower bound: 20.3 KiB of memory read or written by all of them\n"}) {
    EXPECT_EQ(count(part), 1U) << part << " is not in: " << text;
  }
}

TEST(LastCall, NamesEveryAlgorithmOfABatchOnce) {
  AllReduceCrossDeviceOps ops("xring", 0);
  const PerReplica value = testing::vectors<float>({{1, 2, 3}, {4, 5, 6}});
  ops.batch_reduce(ReduceOp::kSum,
                   std::vector<ValueDestination>{{value, value}, {value, "CPU:0"}, {value, value}});
  EXPECT_EQ(ops.last_call().algorithm, "xring + one_device");
}

TEST(LastCall, CountsCallsTensorsAndBytes) {
  ReductionToOneDevice ops;
  EXPECT_EQ(ops.last_call().number, 0U);
  EXPECT_EQ(ops.last_call().algorithm, "");
  const PerReplica value = testing::vectors<float>({{1, 2, 3}, {4, 5, 6}});
  const std::vector<ValueDestination> pairs{{value, value}, {scalars<double>({1, 2}), "CPU:0"}};
  ops.batch_reduce(ReduceOp::kSum, pairs);
  CallReport report = ops.last_call();
  EXPECT_EQ(report.number, 1U);
  EXPECT_EQ(report.algorithm, "one_device");
  EXPECT_EQ(report.tensors, 2U);
  EXPECT_EQ(report.bytes, 3U * 4 + 8);
  EXPECT_GT(report.time.count(), 0);
  ops.batch_reduce_async(ReduceOp::kSum, pairs).wait();
  std::vector<PerReplica> values{value};
  std::vector<PerReplica> results = values;
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  ops.prepare(ReduceOp::kSum, values, results).run();
  report = ops.last_call();
  EXPECT_EQ(report.number, 4U);
  EXPECT_EQ(report.tensors, 1U);
  EXPECT_EQ(report.bytes, 12U);
}

// Numbers of one call, never of two, while calls of different kinds run.
TEST(LastCall, IsOfOneCallWhileOthersRun) {
  ReductionToOneDevice ops;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!stop) {
      const CallReport report = ops.last_call();
      ASSERT_GE(report.number, last);
      last = report.number;
      ASSERT_EQ(report.bytes, report.tensors == 0 ? 0U : report.tensors == 1 ? 4U : 24U);
    }
  });
  const std::vector<ValueDestination> one{{scalars<float>({1, 2}), "CPU:0"}};
  const std::vector<ValueDestination> three{3, {scalars<double>({1, 2}), "CPU:0"}};
  for (int i = 0; i < 2000; ++i) ops.batch_reduce(ReduceOp::kSum, i % 2 == 0 ? one : three);
  stop = true;
  reader.join();
  EXPECT_EQ(ops.last_call().number, 2000U);
}

}  // namespace
}  // namespace onesum
