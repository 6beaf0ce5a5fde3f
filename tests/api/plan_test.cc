// docs/semantics.md, 5.10. What a call would do, why, and what the last one did.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "plan/text.h"
#include "plan/verify.h"
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
       {"2 tensor(s)", "2 pack(s)", "canonical", "one_device", "reduce_to_device", "CPU:1", "int8",
        "summed in int64", "results in float32", "lower bound: 6 bytes", "lower bound: 12 bytes"}) {
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
  for (const char* part : {"3 tensor(s) in 2 pack(s) on 9 device(s) of 3 worker(s)",
                           "spec 0 (xring, 1 shard(s), tensors of up to 64", "takes 1 tensor(s), 64 bytes",
                           "takes 2 tensor(s), 20000 bytes", "5000 elements in 2 piece(s)",
                           "not the canonical one, which a ring cannot keep", "up to 2 subtrees",
                           "predicted time: ", "no plan takes less than "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  CommunicationOptions fast;
  fast.numerics = Numerics::kFast;
  EXPECT_EQ(ops.explain(ReduceOp::kSum, specs, false, fast).find("subtrees"), std::string::npos);
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
