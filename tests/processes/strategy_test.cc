// docs/semantics.md, section 7, over worker processes: a MirroredStrategy in each of them, whose replicas are
// those of one call.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sides.h"
#include "workers.h"

namespace onesum::testing {
namespace {

// One replica on worker 1, two on each other one.
std::vector<std::string> devices_of(int rank) {
  return rank == 1 ? std::vector<std::string>{"CPU:0"} : std::vector<std::string>{"CPU:0", "CPU:1"};
}

std::unique_ptr<CrossDeviceOps> ops_of(const Cluster& cluster) {
  return std::make_unique<ReductionToOneDevice>(std::nullopt, AccumulationFn(), cluster);
}

Tensor number(float x, const Device& device) { return Tensor::from<float>({x}, {1}, device); }

std::string text_of(const Tensor& tensor) {
  std::string text;
  for (const float x : tensor.data<float>()) text += std::to_string(static_cast<int>(x)) + " ";
  return text;
}

// What each of 2, and of 3 workers, gets from `body`.
void expect_all(const std::function<std::string(MirroredStrategy&, int rank)>& body,
                const std::string& of_two, const std::string& of_three) {
  for (const int workers : {2, 3}) {
    for (const WorkerEnd& end : run_workers(workers, [&](int rank) {
           MirroredStrategy strategy(devices_of(rank), ops_of(Cluster::from_environment()));
           return body(strategy, rank);
         })) {
      EXPECT_EQ(end.text, workers == 2 ? of_two : of_three);
    }
  }
}

// Replica r of worker w holds 100 w + 10 r + 1.
float held(int rank, const ReplicaContext& replica) {
  return static_cast<float>(100 * rank + 10 * replica.replica_id() + 1);
}

TEST(StrategiesOfProcesses, AllReduce) {
  expect_all(
      [](MirroredStrategy& strategy, int rank) {
        const PerReplica sums = strategy.run([&](ReplicaContext& replica) {
          const Tensor mine = number(held(rank, replica), replica.device());
          const std::vector<Tensor> both = replica.all_reduce(ReduceOp::kSum, {mine, mine});
          return replica.all_reduce(ReduceOp::kMean, both[1]);
        });
        std::string text;
        for (std::size_t r = 0; r < sums.size(); ++r) text = text_of(sums.tensor(r));
        return text + text_of(strategy.reduce(ReduceOp::kSum, PerReplica(sums.tensor(0))));
      },
      "113 226 ", "525 1575 ");
}

TEST(StrategiesOfProcesses, AllReduceOfSlices) {
  CommunicationOptions merging;
  merging.sparse_rows = SparseRows::kMergeDuplicates;
  expect_all(
      [&](MirroredStrategy& strategy, int rank) {
        std::string text;
        strategy.run([&](ReplicaContext& replica) {
          const IndexedSlices mine{number(held(rank, replica), replica.device()).reshaped({1, 1}),
                                   Tensor::from<std::int64_t>({rank % 2}, {1}, replica.device()),
                                   Shape{4, 1}};
          const IndexedSlices merged = replica.all_reduce(ReduceOp::kSum, mine, merging);
          const IndexedSlices all = replica.all_reduce(ReduceOp::kSum, mine);
          if (replica.replica_id() == 0) text = text_of(merged.values) + text_of(all.values);
        });
        return text;
      },
      "12 101 1 11 101 ", "424 101 1 11 101 201 211 ");
}

TEST(StrategiesOfProcesses, MergeCallsAndVariables) {
  expect_all(
      [](MirroredStrategy& strategy, int rank) {
        const auto variable = [&] {
          const StrategyScope scope = strategy.scope();
          return Variable("v", number(static_cast<float>(rank), "CPU:0"));
        }();
        // All begin with what worker 0 has.
        Variable(variable).assign(strategy.extended().broadcast_to(variable.value(), variable));
        strategy.run([&](ReplicaContext& replica) {
          const Tensor mine = number(held(rank, replica), replica.device());
          const Value sum = replica.merge_call(
              [&](MirroredStrategy& all, std::span<const PerReplica> values) {
                return all.extended().reduce_to(ReduceOp::kSum, values[0], variable);
              },
              {mine});
          Variable(variable).assign(std::get<Tensor>(sum));
        });
        std::string text;
        for (const Tensor& component : variable.components()) text = text_of(component);
        return text + text_of(strategy.extended()
                                  .batch_reduce_to(ReduceOp::kMean,
                                                   std::vector<ValueDestination>{{variable, variable}})[0]
                                  .tensor());
      },
      "113 113 ", "525 525 ");
}

}  // namespace
}  // namespace onesum::testing
