// docs/semantics.md, 6.2 to 6.5: how the classes that all-reduce are made, and what their constructors
// refuse.
#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "api/all_reduce_policy.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::expect_error;
using testing::expect_invalid;
using testing::scalar;

const std::vector<std::string> kWorkers{"/job:worker/task:0", "/job:worker/task:1"};

static_assert(std::is_base_of_v<AllReduceCrossDeviceOps, NcclAllReduce>);
static_assert(std::is_base_of_v<AllReduceCrossDeviceOps, HierarchicalCopyAllReduce>);
static_assert(std::is_base_of_v<AllReduceCrossDeviceOps, MultiWorkerAllReduce>);
static_assert(!std::is_convertible_v<const char*, AllReduceCrossDeviceOps>);

// One replica on each worker's CPU:0.
PerReplica on_workers(float first, float second) {
  return PerReplica(std::vector<Tensor>{scalar(first, "/job:worker/task:0/CPU:0"),
                                        scalar(second, "/job:worker/task:1/CPU:0")});
}

void expect_sums(CrossDeviceOps& ops) {
  const PerReplica value = on_workers(1, 2);
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
  EXPECT_EQ(sum.devices(), std::vector<Device>({Device(value.devices()[0]).canonical(),
                                                Device(value.devices()[1]).canonical()}));
  for (std::size_t d = 0; d < 2; ++d) EXPECT_EQ(contents<float>(sum.tensor(d)), std::vector<float>{3});
}

// 6.5
TEST(Specs, MayBeWrittenInManyWays) {
  MultiWorkerAllReduce defaults(kWorkers, 2);
  MultiWorkerAllReduce tuple(kWorkers, 2, {{"pscpu/pscpu", 2, -1}});
  MultiWorkerAllReduce list(kWorkers, 2, {{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -1}});
  MultiWorkerAllReduce name(kWorkers, 2, "xring");
  MultiWorkerAllReduce text(kWorkers, 2, "pscpu:2k:pscpu#2:64k:xring");
  MultiWorkerAllReduce one(kWorkers, 2, AllReduceSpec{"xring", 2});
  MultiWorkerAllReduce short_one(kWorkers, 2, {{"xring"}});
  MultiWorkerAllReduce vector(kWorkers, 2, std::vector<AllReduceSpec>{{"rechd", 1, 64}, {"direct"}});
  MultiWorkerAllReduce in_place({"/job:a", "/job:b"}, 1, std::string("auto"), 0, 0, 10,
                                Cluster::embedded({"/job:a", "/job:b"}, 1));
  for (CrossDeviceOps* ops :
       std::vector<CrossDeviceOps*>{&defaults, &tuple, &list, &name, &text, &one, &short_one, &vector}) {
    expect_sums(*ops);
  }
  EXPECT_EQ(in_place.cluster().size(), 2);
}

// 6.5
TEST(Specs, ArePrintedAsText) {
  const AllReduceSpecs specs{{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -5}};
  EXPECT_EQ(specs.to_string(), "nccl#2:1k:pscpu/pscpu#2");
  EXPECT_EQ(AllReduceSpecs(specs.to_string()), specs);
  ASSERT_EQ(specs.values().size(), 2U);
  EXPECT_EQ(specs.values()[1], (AllReduceSpec{"pscpu/pscpu", 2, -1}));
  EXPECT_NE(specs, AllReduceSpecs("nccl"));
}

// 6.5, 8.27
TEST(Specs, ThatAreNotValidAreRefusedWhenMade) {
  expect_invalid([] { AllReduceSpecs(std::vector<AllReduceSpec>()); }, {"all_reduce_spec is empty"});
  expect_invalid([] { AllReduceSpecs(""); }, {"all_reduce_spec is empty"});
  expect_invalid([] { AllReduceSpecs("ring"); }, {"\"ring\"", "xring"});
  expect_invalid([] { AllReduceSpecs(AllReduceSpec{"xring", 0}); }, {"all_reduce_spec[0]", "0 shards"});
  expect_invalid([] { AllReduceSpecs({{"nccl", 2, 1024}, {"pscpu/pscpu", 2, 2048}}); },
                 {"all_reduce_spec[1]", "last"});
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, 2, {{"xring", 2, 4096}, {"ncl", 2, -1}}); },
                 {"all_reduce_spec[1]", "\"ncl\"", "nccl"});
}

// 6.3, 8.26
TEST(Packing, RefusesNegativeNumbersOfPacks) {
  expect_invalid([] { AllReduceCrossDeviceOps("nccl", -1); }, {"AllReduceCrossDeviceOps", "num_packs", "-1"});
  expect_invalid([] { NcclAllReduce(-2); }, {"NcclAllReduce: ", "-2", "0 (no packing) or more"});
  expect_invalid([] { HierarchicalCopyAllReduce(-3); }, {"HierarchicalCopyAllReduce: ", "-3"});
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, 1, "xring", -4); }, {"MultiWorkerAllReduce: ", "-4"});
}

// 6.3
TEST(Packing, OfNoneAndOfManyIsTaken) {
  for (const int packs : {0, 1, 8, 1000}) {
    NcclAllReduce nccl(packs);
    HierarchicalCopyAllReduce hierarchical(packs);
    AllReduceCrossDeviceOps small("direct", packs, -1, -1);
    const PerReplica value = testing::scalars<float>({1, 2, 4});
    for (CrossDeviceOps* ops : std::vector<CrossDeviceOps*>{&nccl, &hierarchical, &small}) {
      EXPECT_EQ(contents<float>(ops->reduce(ReduceOp::kSum, value, value).tensor(2)), std::vector<float>{7});
    }
  }
  for (const std::int64_t bytes : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{16}}) {
    for (const int group : {-1, 0, 1, 10}) {
      MultiWorkerAllReduce ops(kWorkers, 1, "pscpu", 0, bytes, group);
      expect_sums(ops);
    }
  }
}

// 6.3
TEST(Packing, OfSmallTensorsIsOffUnlessBothLimitsArePositive) {
  const AllReduceSpecs specs("nccl:2k:xring#2");
  const auto policy = [&](const api::Packing& packing) {
    return api::all_reduce_policy("Name", specs.values(), packing);
  };
  const planner::Policy on = policy({0, 100, 7});
  EXPECT_EQ(on.small_tensor_max_bytes, 100U);
  EXPECT_EQ(on.small_tensors_max_group, 7);
  EXPECT_EQ(on.name, "Name");
  EXPECT_EQ(on.specs, std::vector<AllReduceSpec>(specs.values().begin(), specs.values().end()));
  EXPECT_EQ(policy({3, 100, 7}).num_packs, 3);
  EXPECT_EQ(policy({0, -1, 7}).small_tensor_max_bytes, 0U);
  EXPECT_EQ(policy({0, 100, 0}).small_tensor_max_bytes, 0U);
  EXPECT_EQ(policy({0, 100, -1}).small_tensor_max_bytes, 0U);
}

// 6.2, 8.27
TEST(AllReduceAlg, IsOneOfTheAlgorithms) {
  for (const char* alg : {"nccl", "hierarchical_copy", "auto", "direct", "xring", "rechd", "pscpu", "psgpu",
                          "nccl/xring", "pscpu/hierarchical_copy"}) {
    EXPECT_NO_THROW(AllReduceCrossDeviceOps{alg});
  }
  expect_invalid([] { AllReduceCrossDeviceOps ops("ring"); },
                 {"AllReduceCrossDeviceOps: all_reduce_alg", "\"ring\"", "did you mean xring?"});
  expect_invalid([] { AllReduceCrossDeviceOps ops(""); }, {"all_reduce_alg", "no algorithm"});
  expect_invalid([] { AllReduceCrossDeviceOps ops("nccl:2k:xring"); }, {"\"nccl:2k:xring\""});
  expect_invalid([] { AllReduceCrossDeviceOps ops("nccl/auto"); }, {"alone"});
}

// 6.4, 8.28
TEST(WorkerDevices, AreRefusedWhereTheyAreNoWorkers) {
  const auto refuse = [](const std::vector<std::string>& workers,
                         std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { MultiWorkerAllReduce(workers, 1); }, parts);
    expect_invalid([&] { Cluster::embedded(workers, 1); }, parts);
  };
  refuse({}, {"worker_devices is empty"});
  refuse({"/job:worker/task:0", ""}, {"worker_devices[1]", "empty", "such as"});
  refuse({"/job:worker/task:0/CPU:0"}, {"worker_devices[0]", "/job:worker/task:0/CPU:0", "device CPU:0"});
  refuse({"/job:worker", "/job:worker/device:GPU:*"}, {"worker_devices[1]", "device GPU:*"});
  refuse({"/job:worker", "/job:worker/task:1", "/job:worker/replica:0/task:0"},
         {"worker_devices[2]", "worker_devices[0]", "\"/job:worker\"", "both /job:worker/replica:0/task:0"});
  refuse({"/job:worker/task:x"}, {"task:x"});
  expect_invalid([] { MultiWorkerAllReduce({}, 1); }, {"MultiWorkerAllReduce: "});
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, -1); }, {"num_gpus_per_worker is -1", "0 (one CPU"});
}

// 6.4, 8.29
TEST(WorkerDevices, AreThoseOfTheClusterInRankOrder) {
  const auto refuse = [](const Cluster& cluster, int devices, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { MultiWorkerAllReduce(kWorkers, devices, "xring", 0, 0, 10, cluster); }, parts);
  };
  refuse(Cluster::embedded({"/job:worker/task:1", "/job:worker/task:0"}, 1), 1,
         {"worker_devices[0] is /job:worker/replica:0/task:0", "worker 0 of the cluster is", "task:1"});
  refuse(Cluster::embedded({"/job:worker/task:0", "/job:worker/task:2"}, 1), 1,
         {"worker_devices[1]", "task:1", "worker 1", "task:2"});
  refuse(Cluster::embedded({"/job:worker"}, 1), 1,
         {"worker_devices[1] is /job:worker/replica:0/task:1", "worker 1 of the cluster is none"});
  refuse(Cluster::embedded({"/job:worker", "/job:worker/task:1", "/job:worker/task:2"}, 1), 1,
         {"worker_devices[2] is none", "task:2", "3 workers"});
  refuse(Cluster::local(), 1, {"worker_devices[0]", "/job:localhost"});
  refuse(Cluster::embedded(kWorkers, 2), 3, {"num_gpus_per_worker is 3", "2 device(s)", "task:0"});
  const Cluster cluster = Cluster::embedded(kWorkers, 2);
  for (const int devices : {0, 1, 2}) {
    MultiWorkerAllReduce ops(kWorkers, devices, "xring", 0, 0, 10, cluster);
    expect_sums(ops);
    EXPECT_EQ(&ops.cluster().state(), &cluster.state());
  }
  EXPECT_NO_THROW(MultiWorkerAllReduce({"/job:localhost"}, 1, "auto", 0, 0, 10, Cluster::local()));
}

// 6.4, 8.27
TEST(Psgpu, NeedsDevicesToGatherOn) {
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, 0, "psgpu"); },
                 {"all_reduce_spec[0] is psgpu", "num_gpus_per_worker is 0"});
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, 0, "pscpu:2k:nccl/psgpu"); },
                 {"all_reduce_spec[1] is nccl/psgpu"});
  expect_invalid([] { MultiWorkerAllReduce(kWorkers, 0, "psgpu/xring"); }, {"psgpu/xring"});
  MultiWorkerAllReduce on_one(kWorkers, 1, "psgpu");
  expect_sums(on_one);
  MultiWorkerAllReduce ring(kWorkers, 0, "xring");
  expect_sums(ring);
}

class Nccl : public ::testing::Test {
 protected:
  template <class F>
  static std::string shown(const F& f) {
    ::testing::internal::CaptureStderr();
    f();
    return ::testing::internal::GetCapturedStderr();
  }
  static auto warnings(const std::string& text) {
    std::size_t count = 0;
    for (auto at = text.find("NCCL serves GPUs only"); at != std::string::npos;
         at = text.find("NCCL serves GPUs only", at + 1)) {
      ++count;
    }
    return count;
  }
  PerReplica value_ = testing::scalars<float>({1, 2});
};

// 6.2
TEST_F(Nccl, WarnsOfCpusOnceAnObject) {
  for (int object = 0; object < 2; ++object) {
    NcclAllReduce ops;
    EXPECT_EQ(shown([&] {
                ops.broadcast(scalar(1.0F, "CPU:0"), value_);
                ops.gather(testing::vectors<float>({{1}, {2}}), "CPU:0", 0);
                ops.explain(ReduceOp::kSum, testing::one_pair(value_, value_));
              }),
              "");
    const std::string text = shown([&] {
      ops.reduce(ReduceOp::kSum, value_, value_);
      ops.reduce(ReduceOp::kMean, value_, value_);
      ops.batch_reduce(ReduceOp::kSum, testing::one_pair(value_, "CPU:0"));
    });
    EXPECT_EQ(warnings(text), 1U) << text;
    EXPECT_NE(text.find("onesum warning: NcclAllReduce: "), std::string::npos) << text;
    EXPECT_NE(text.find(testing::full_name(0)), std::string::npos) << text;
  }
}

// 6.2
TEST_F(Nccl, WarnsWhereverItIsNamed) {
  AllReduceCrossDeviceOps batch("nccl/xring", 0);
  EXPECT_EQ(warnings(shown([&] { batch.batch_reduce(ReduceOp::kSum, testing::one_pair(value_, value_)); })),
            1U);
  AllReduceCrossDeviceOps into;
  const std::vector<PerReplica> values{value_};
  EXPECT_EQ(warnings(shown([&] {
              std::vector<PerReplica> results{value_};
              PreparedReduce prepared = into.prepare(ReduceOp::kSum, values, results);
              prepared.run();
              into.batch_reduce_into(ReduceOp::kSum, values, results);
            })),
            1U);
  MultiWorkerAllReduce workers(kWorkers, 1, "pscpu:2k:pscpu/nccl");
  EXPECT_EQ(warnings(shown([&] { expect_sums(workers); })), 1U);
  AllReduceCrossDeviceOps other("xring");
  EXPECT_EQ(shown([&] { other.reduce(ReduceOp::kSum, value_, value_); }), "");
}

}  // namespace
}  // namespace onesum
