// docs/semantics.md, 4.6 and 4.7, over worker processes.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sparse_calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

CommunicationOptions merging() {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  return options;
}

IndexedSlices rows_at(const std::vector<float>& values, const std::vector<std::int64_t>& indices,
                      std::optional<Shape> dense_shape = {}) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  return {Tensor::from<float>(values, {rows, 2}, "CPU:0"),
          Tensor::from<std::int64_t>(indices, {rows}, "CPU:0"), std::move(dense_shape)};
}

std::string text_of(const IndexedSlices& slices) {
  std::string text;
  for (const std::int64_t index : slices.indices.data<std::int64_t>()) text += std::to_string(index) + " ";
  text += ": ";
  for (const float value : slices.values.data<float>()) text += std::to_string(static_cast<int>(value)) + " ";
  return text + (slices.dense_shape ? "of " + slices.dense_shape->to_string() : "");
}

TEST(SparseOfProcesses, MergedRowsHaveTheBitsOfEmbeddedWorkers) {
  for (const int workers : {2, 3}) expect_same(workers, merged_sums);
}

TEST(SparseOfProcesses, MixedValuesHaveTheBitsOfEmbeddedWorkers) {
  for (const int workers : {2, 3}) expect_same(workers, mixed_sums);
}

TEST(SparseOfProcesses, OverTcp) {
  expect_same(2, merged_sums, "tcp");
  expect_same(2, mixed_sums, "tcp");
}

// Against sums that know nothing of plans: small whole numbers have one sum in any order.
TEST(SparseOfProcesses, MergedRowsAreTheSumsOfTheirRows) {
  constexpr int kWorkers = 3;
  const auto indices_of = [](int rank) { return std::vector<std::int64_t>{rank, 7, 1000000007, rank, 1}; };
  const auto value_of = [](int rank, std::size_t at) {
    return static_cast<float>(100 * rank) + static_cast<float>(at);
  };
  std::map<std::int64_t, std::vector<int>> expected;
  for (int rank = 0; rank < kWorkers; ++rank) {
    const std::vector<std::int64_t> indices = indices_of(rank);
    for (std::size_t row = 0; row < indices.size(); ++row) {
      std::vector<int>& sum = expected[indices[row]];
      sum.resize(2);
      for (std::size_t i = 0; i < 2; ++i) sum[i] += static_cast<int>(value_of(rank, 2 * row + i));
    }
  }
  std::string text;
  for (const auto& [index, sum] : expected) text += std::to_string(index) + " ";
  text += ": ";
  for (const auto& [index, sum] : expected) {
    for (const int element : sum) text += std::to_string(element) + " ";
  }

  for (const WorkerEnd& end : run_workers(kWorkers, [&](int rank) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         std::vector<float> values;
         for (std::size_t at = 0; at < 10; ++at) values.push_back(value_of(rank, at));
         const IndexedSlices mine = rows_at(values, indices_of(rank));
         return text_of(ops.reduce(ReduceOp::kSum, mine, "CPU:0", merging()).slices());
       })) {
    EXPECT_EQ(end.text, text);
  }
}

// 4.6: dense on one worker, sparse on the other.
TEST(SparseOfProcesses, AMixedSumIsTheSumOfBoth) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         const Tensor dense = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}, "CPU:0");
         const Value mine = rank == 0 ? Value(dense) : Value(rows_at({10, 20, 30, 40}, {2, 2}));
         const Mirrored sum = ops.reduce(ReduceOp::kSum, PerReplica(std::vector<Value>{mine}), "CPU:0");
         std::string text;
         for (const float x : sum.tensor().data<float>()) text += std::to_string(static_cast<int>(x)) + " ";
         return text;
       })) {
    EXPECT_EQ(end.text, "1 2 3 4 45 66 ");
  }
}

// 4.5: the replicas of one worker may know the dense shape for all.
TEST(SparseOfProcesses, TheDenseShapeIsThatOfAnyWorker) {
  for (const CommunicationOptions& options : {CommunicationOptions{}, merging()}) {
    for (const WorkerEnd& end : run_workers(2, [&](int rank) {
           ReductionToOneDevice ops({}, {}, Cluster::from_environment());
           const IndexedSlices mine =
               rows_at({1, 2}, {rank}, rank == 1 ? std::optional(Shape{9, 2}) : std::nullopt);
           return text_of(ops.reduce(ReduceOp::kSum, mine, "CPU:0", options).slices());
         })) {
      EXPECT_EQ(end.text, "0 1 : 1 2 1 2 of [9,2]");
    }
  }
}

TEST(SparseOfProcesses, NobodyNeedsToHaveRows) {
  for (const WorkerEnd& end : run_workers(3, [](int) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         const IndexedSlices nothing = rows_at({}, {});
         return text_of(ops.reduce(ReduceOp::kMean, nothing, "CPU:0", merging()).slices()) +
                text_of(ops.reduce(ReduceOp::kMean, nothing, "CPU:0").slices());
       })) {
    EXPECT_EQ(end.text, ": : ");
  }
}

// What all workers find wrong ends nothing.
TEST(SparseOfProcesses, ResultsWithTheWrongNumberOfRowsAreRefusedByAll) {
  const std::vector<WorkerEnd> ends = run_workers(2, [](int rank) {
    ReductionToOneDevice ops({}, {}, Cluster::from_environment());
    const std::vector<PerReplica> values{rows_at({1, 2}, {rank})};
    std::vector<PerReplica> results{rows_at({0, 0, 0, 0, 0, 0}, {0, 0, 0})};
    std::string text;
    try {
      ops.batch_reduce_into(ReduceOp::kSum, values, results, merging());
    } catch (const Error& error) {
      text = std::string(to_string(error.code())) + " " + error.what();
    }
    results = {rows_at({0, 0, 0, 0}, {0, 0})};
    ops.batch_reduce_into(ReduceOp::kSum, values, results, merging());
    return text + "; then " + text_of(results.front().slices());
  });
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text,
                HasSubstr("invalid_argument pair 0: result on /job:worker/replica:0/task:0/device:CPU:0 "
                          "has 3 row(s), expected 2"));
    EXPECT_THAT(end.text, HasSubstr("; then 0 1 : 1 2 1 2"));
  }
}

TEST(SparseOfProcesses, AnIndexThatNamesNoRowIsNamedToAll) {
  const std::vector<WorkerEnd> ends = run_workers(2, [](int rank) {
    ReductionToOneDevice ops({}, {}, Cluster::from_environment());
    const IndexedSlices mine = rows_at({1, 2}, {rank == 1 ? 9 : 0}, Shape{5, 2});
    return text_of(ops.reduce(ReduceOp::kSum, mine, "CPU:0", merging()).slices());
  });
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text, HasSubstr("error invalid_argument: worker 1"));
    EXPECT_THAT(end.text, HasSubstr("refused call 0: value: replica 0: row 0 has index 9"));
  }
}

// Only the other worker knows how many rows there are.
TEST(SparseOfProcesses, AnIndexBeyondTheOthersDenseShapeIsNamedToAll) {
  for (const bool is_dense : {false, true}) {
    const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) {
      ReductionToOneDevice ops({}, {}, Cluster::from_environment());
      Value mine =
          rows_at({1, 2}, {rank == 1 ? 9 : 0}, rank == 0 ? std::optional(Shape{5, 2}) : std::nullopt);
      if (is_dense && rank == 0) mine = Tensor::empty(DType::kFloat32, {5, 2}, "CPU:0");
      const Mirrored sum =
          ops.reduce(ReduceOp::kSum, PerReplica(std::vector<Value>{mine}), own_device(0, 0), merging());
      return std::to_string(sum.size());
    });
    for (const WorkerEnd& end : ends)
      EXPECT_THAT(end.text,
                  HasSubstr("value: replica 0: row 0 has index 9; expected 0 or more and less than 5"));
    EXPECT_THAT(ends[0].text, HasSubstr("error aborted: worker 1"));
  }
}

// A value that was dense everywhere is not asked about again: what is sparse later is another call.
TEST(SparseOfProcesses, AKnownDenseCallDoesNotMeetASparseOne) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) {
    ReductionToOneDevice ops({}, {}, Cluster::from_environment());
    const Tensor dense = Tensor::from<float>({1, 2, 3, 4}, {2, 2}, "CPU:0");
    ops.reduce(ReduceOp::kSum, dense, "CPU:0");
    const Value mine = rank == 0 ? Value(dense) : Value(rows_at({1, 2}, {1}));
    return std::to_string(ops.reduce(ReduceOp::kSum, PerReplica(std::vector<Value>{mine}), "CPU:0").size());
  });
  for (const WorkerEnd& end : ends)
    EXPECT_THAT(end.text, HasSubstr("error invalid_argument: workers call differently"));
}

}  // namespace
}  // namespace onesum::testing
