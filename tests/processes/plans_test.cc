// docs/semantics.md, 5.10, over worker processes: plans that ask nobody, as if all workers called alike.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sides.h"
#include "workers.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 3;

CommunicationOptions merging() {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  return options;
}

// As many rows on each device.
PerReplica slices(const Side& side) {
  std::vector<Value> components;
  for (int worker = side.first(); worker < side.first() + side.count(); ++worker) {
    for (int device = 0; device < kDevices; ++device) {
      const std::string name = own_device(worker, device);
      components.emplace_back(IndexedSlices{Tensor::empty(DType::kFloat32, {7, 3}, name),
                                            Tensor::empty(DType::kInt32, {7}, name), Shape{50, 3}});
    }
  }
  return PerReplica(std::move(components));
}

std::string text_of(const CrossDeviceOps& ops, const std::vector<ValueDestination>& pairs,
                    const CommunicationOptions& options = {}) {
  return ops.plan(ReduceOp::kMean, pairs, options).to_text() + "\n" +
         ops.explain(ReduceOp::kMean, pairs, options) + "\n";
}

std::string plans_of(const Side& side) {
  const PerReplica value = side.values(DType::kFloat32, 5000, 1);
  const PerReplica small = side.values(DType::kInt32, 3, 2);
  std::string text;
  for (const char* spec : {"auto", "xring", "nccl/rechd", "pscpu:64:direct"}) {
    MultiWorkerAllReduce ops = side.ops(spec);
    text += text_of(ops, {{value, value}, {small, "CPU:0"}, {small, small}, {value, own_device(2, 1)}});
  }
  ReductionToOneDevice ops(own_device(1, 0), {}, side.cluster);
  text += text_of(ops, {{value, value}, {slices(side), slices(side)}});
  return text;
}

std::string without_assumption(std::string text, std::size_t& found) {
  const std::string line =
      "assumed: each of the 3 workers calls as this one does, with as many replicas of the same types and "
      "shapes on its own devices\n";
  for (std::size_t at = text.find(line); at != std::string::npos; at = text.find(line)) {
    text.erase(at, line.size());
    ++found;
  }
  return text;
}

TEST(PlansOfProcesses, AreThoseOfEmbeddedWorkersThatCallAlike) {
  const std::string expected =
      run_alone([] { return plans_of({Cluster::embedded(worker_names(kWorkers), kDevices), -1, kWorkers}); });
  EXPECT_THAT(expected, ::testing::Not(::testing::HasSubstr("error")));
  for (const WorkerEnd& end : run_workers(
           kWorkers, [](int rank) { return plans_of({Cluster::from_environment(), rank, kWorkers}); })) {
    std::size_t found = 0;
    EXPECT_EQ(without_assumption(end.text, found), expected);
    EXPECT_EQ(found, 5U);
  }
}

// One worker may ask for a plan while the others do something else.
TEST(PlansOfProcesses, AskNobody) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         const PerReplica value = replicas(rank, 1, DType::kFloat32, 100, 1);
         const std::vector<ValueDestination> pairs{{value, value}};
         if (rank == 1) ops.plan(ReduceOp::kSum, pairs);
         return digest(ops.reduce(ReduceOp::kSum, value, "CPU:0"));
       })) {
    EXPECT_THAT(end.text, ::testing::Not(::testing::HasSubstr("error")));
  }
}

TEST(PlansOfProcesses, OfRowsThatEveryWorkerMerges) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         const PerReplica value = slices({ops.cluster(), rank, 2});
         return text_of(ops, {{value, value}}, merging());
       })) {
    EXPECT_THAT(end.text, ::testing::HasSubstr("added in float32, inside a replica by position and over "
                                               "replicas in canonical order, divided by 4 and written once "
                                               "to 4 destinations as float32"));
  }
}

TEST(PlansOfProcesses, WithAFunction) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops(
             {}, [](std::span<const Tensor> components) { return components[0]; },
             Cluster::from_environment());
         const PerReplica value = replicas(rank, 1, DType::kFloat32, 100, 1);
         return text_of(ops, {{value, value}});
       })) {
    EXPECT_THAT(end.text,
                ::testing::HasSubstr("4 devices of 2 workers; order of additions: accumulation_fn"));
  }
}

}  // namespace
}  // namespace onesum::testing
