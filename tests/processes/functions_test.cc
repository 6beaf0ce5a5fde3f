// docs/semantics.md, 6.1, over worker processes: a caller's own function in the place of the sum.
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function_calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;
using Components = std::span<const Tensor>;

TEST(FunctionsOfProcesses, HaveTheBitsOfEmbeddedWorkersOverSharedMemory) {
  for (const int workers : {2, 3}) expect_same(workers, function_sums);
}

TEST(FunctionsOfProcesses, HaveTheBitsOfEmbeddedWorkersOverTcp) { expect_same(2, function_sums, "tcp"); }

TEST(FunctionsOfProcesses, InPlacePreparedAndStarted) {
  expect_same(3, [](const Side& side) {
    ReductionToOneDevice ops({}, chain, side.cluster);
    const std::vector<PerReplica> values{uneven_ints(side, 3), uneven_ints(side, 150003)};
    std::vector<PerReplica> results = values;
    ops.batch_reduce_into(ReduceOp::kSum, values, results);
    PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
    prepared.run();
    prepared.start().wait();
    std::vector<Mirrored> all;
    for (const PerReplica& result : results)
      all.emplace_back(std::vector<Value>(result.values().begin(), result.values().end()));
    return all;
  });
}

// Without embedded workers to compare with: as a loop over the replicas' numbers.
TEST(FunctionsOfProcesses, GetWhatTheReplicasHold) {
  for (const WorkerEnd& end : run_workers(3, [](int rank) {
         const Side side{Cluster::from_environment(), rank, 3};
         ReductionToOneDevice ops(own_device(2, 0), chain, side.cluster);
         const PerReplica value = uneven_ints(side, 150001);
         const Mirrored sum = ops.reduce(ReduceOp::kSum, value, "CPU:0");
         const std::span<const std::int32_t> found = sum.tensor().data<std::int32_t>();
         std::size_t wrong = 0;
         for (std::size_t i = 0; i < 150001; ++i) {
           std::int32_t expected = 0;
           for (int replica = 0; replica < 5; ++replica) expected = chained(expected, number_of(replica, i));
           wrong += found[i] == expected ? 0 : 1;
         }
         return std::to_string(wrong);
       })) {
    EXPECT_EQ(end.text, "0");
  }
}

// It is called once, on the worker of its device, with what all replicas hold, in their order.
TEST(FunctionsOfProcesses, AreCalledOnOneWorkerWithAllComponents) {
  const std::vector<WorkerEnd> ends = run_workers(3, [](int rank) {
    std::string calls;
    ReductionToOneDevice ops(
        "/job:worker/task:1/cpu:4",
        [&](Components components) {
          for (const Tensor& component : components) {
            const int number = component.data<std::int32_t>()[0];
            calls += std::to_string(number) + " on " + component.device().to_string() + " ";
          }
          return components.back();
        },
        Cluster::from_environment());
    const Mirrored sum =
        ops.reduce(ReduceOp::kSum, Tensor::from<std::int32_t>({rank}, {1}, "CPU:0"), "CPU:0");
    return calls + "gives " + std::to_string(sum.tensor().data<std::int32_t>()[0]);
  });
  const std::string home = "/job:worker/replica:0/task:1/device:CPU:4 ";
  EXPECT_EQ(ends[0].text, "gives 2");
  EXPECT_EQ(ends[1].text, "0 on " + home + "1 on /device:CPU:0 2 on " + home + "gives 2");
  EXPECT_EQ(ends[2].text, "gives 2");
}

// 4.8
TEST(FunctionsOfProcesses, SparseValuesBypassThem) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops(
             {}, [](Components) -> Tensor { throw std::logic_error("called"); }, Cluster::from_environment());
         const IndexedSlices mine{
             Tensor::from<float>({1}, {1, 1}, "CPU:0"), Tensor::from<std::int64_t>({rank}, {1}, "CPU:0"), {}};
         CommunicationOptions options;
         options.sparse_rows = SparseRows::kMergeDuplicates;
         return std::to_string(ops.reduce(ReduceOp::kSum, mine, "CPU:0").slices().indices.bytes()) + " " +
                std::to_string(ops.reduce(ReduceOp::kSum, mine, "CPU:0", options).slices().indices.bytes());
       })) {
    EXPECT_EQ(end.text, "16 16");
  }
}

// What a function throws reaches its caller, and by name everybody else; and so does every later call.
std::vector<WorkerEnd> ends_with(const AccumulationFn& fn) {
  return run_workers(3, [&](int rank) {
    ReductionToOneDevice ops({}, fn, Cluster::from_environment());
    const Tensor mine = Tensor::from<float>({static_cast<float>(rank)}, {1}, "CPU:0");
    std::string text;
    for (int i = 0; i < 2; ++i) {
      try {
        ops.reduce(ReduceOp::kSum, mine, "CPU:0");
        text += "nothing";
      } catch (const Error& error) {
        text += std::string(to_string(error.code())) + ": " + error.what() + "\n";
      } catch (const std::exception& error) {
        text += std::string("their own: ") + error.what() + "\n";
      }
    }
    return text;
  });
}

TEST(FunctionsOfProcesses, WhatTheyThrowEndsTheCallOnAllWorkers) {
  const std::string verdict =
      "aborted: worker 0 (/job:worker/replica:0/task:0) failed in call 0 (reduce (sum) of float32 [1] on 1 "
      "device(s) by ReductionToOneDevice with an accumulation_fn): boom\n";
  const std::vector<WorkerEnd> ends =
      ends_with([](Components) -> Tensor { throw std::runtime_error("boom"); });
  EXPECT_EQ(ends[0].text, "their own: boom\n" + verdict);
  EXPECT_EQ(ends[1].text, verdict + verdict);
  EXPECT_EQ(ends[2].text, verdict + verdict);
}

TEST(FunctionsOfProcesses, WhatTheyReturnIsChecked) {
  const std::vector<WorkerEnd> ends = ends_with(
      [](Components components) { return Tensor::from<float>({1, 2}, {2}, components[0].device()); });
  EXPECT_THAT(ends[0].text, HasSubstr("invalid_argument: value: accumulation_fn returned float32 [2]"));
  for (const WorkerEnd& end : ends)
    EXPECT_THAT(end.text, HasSubstr("aborted: worker 0 (/job:worker/replica:0/task:0) failed in call 0"));
}

}  // namespace
}  // namespace onesum::testing
