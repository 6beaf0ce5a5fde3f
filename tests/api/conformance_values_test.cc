// docs/semantics.md, sections 4 and 9. Reductions of numbers known from elsewhere: dense, sparse and mixed
// values, variables, several shapes in a batch.
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/variable.h>

#include "api/sparse.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::slices;

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;

void expect_slices(const IndexedSlices& found, const Floats& values, const Indices& indices,
                   const std::optional<Shape>& dense_shape) {
  EXPECT_EQ(contents<float>(found.values), values);
  EXPECT_EQ(contents<std::int64_t>(found.indices), indices);
  EXPECT_EQ(found.dense_shape, dense_shape);
}

PerReplica two_sparse_replicas() {
  return PerReplica(
      {slices({{1, 2}}, {1}, Shape{5, 2}, "CPU:0"), slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, "CPU:1")});
}

// 4.2, 9.7
TEST(Sparse, SumToOneDeviceConcatenates) {
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kSum, two_sparse_replicas(), "CPU:0");
  ASSERT_EQ(result.size(), 1U);
  EXPECT_EQ(result.slices().values.device().canonical(), Device("CPU:0").canonical());
  EXPECT_EQ(result.slices().indices.device().canonical(), Device("CPU:0").canonical());
  expect_slices(result.slices(), {1, 2, 3, 4, 5, 6}, {1, 1, 3}, Shape{5, 2});
  const Tensor dense = api::densify(result.slices(), Shape{5, 2}, DType::kFloat32);
  EXPECT_EQ(contents<float>(dense), (Floats{0, 0, 4, 6, 0, 0, 5, 6, 0, 0}));
}

// 4.2, 4.3, 9.7
TEST(Sparse, AllReduceGivesEveryDeviceEverything) {
  ReductionToOneDevice ops;
  const PerReplica value = two_sparse_replicas();
  for (const bool batched : {false, true}) {
    const auto reduce = [&](ReduceOp op) {
      if (!batched) return ops.reduce(op, value, value);
      return ops.batch_reduce(op, testing::one_pair(value, value)).at(0);
    };
    const Mirrored sum = reduce(ReduceOp::kSum);
    const Mirrored mean = reduce(ReduceOp::kMean);
    ASSERT_EQ(sum.size(), 2U);
    for (std::size_t d = 0; d < 2; ++d) {
      EXPECT_EQ(sum.slices(d).values.device().canonical(), Device(cpus(2)[d]).canonical());
      expect_slices(sum.slices(d), {1, 2, 3, 4, 5, 6}, {1, 1, 3}, Shape{5, 2});
      expect_slices(mean.slices(d), {.5F, 1, 1.5F, 2, 2.5F, 3}, {1, 1, 3}, Shape{5, 2});
    }
  }
}

// 4.2
TEST(Sparse, ConcatenatesTheFirstNOfFour) {
  ReductionToOneDevice ops;
  const Shape shape{10, 1};
  const std::vector<Value> all{
      slices({{1}, {2}}, {0, 1}, shape, "CPU:0"), slices({{3}, {4}}, {1, 2}, shape, "CPU:1"),
      slices({{5}, {6}}, {7, 8}, shape, "CPU:2"), slices({{7}, {8}}, {3, 2}, shape, "CPU:3")};
  const Floats values{1, 2, 3, 4, 5, 6, 7, 8};
  const Indices indices{0, 1, 1, 2, 7, 8, 3, 2};
  for (const std::size_t n : {1U, 2U, 4U}) {
    const PerReplica value(std::vector<Value>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)));
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, value);
    for (std::size_t d = 0; d < n; ++d) {
      expect_slices(result.slices(d),
                    Floats(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(2 * n)),
                    Indices(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(2 * n)), shape);
    }
  }
}

// 4.2
TEST(Sparse, ReplicasMayDifferInLengthAndBeEmpty) {
  ReductionToOneDevice ops;
  const PerReplica value(
      {slices({{1}}, {0}, Shape{10, 1}, "CPU:0"), slices({{2}, {3}, {4}}, {0, 1, 2}, Shape{10, 1}, "CPU:1")});
  expect_slices(ops.reduce(ReduceOp::kSum, value, value).slices(1), {1, 2, 3, 4}, {0, 0, 1, 2}, Shape{10, 1});

  const PerReplica holes({slices({}, {}, Shape{10, 1}, "CPU:0"),
                          slices({{2}, {3}}, {5, 4}, Shape{10, 1}, "CPU:1"),
                          slices({}, {}, Shape{10, 1}, "CPU:2"), slices({{9}}, {9}, Shape{10, 1}, "CPU:3")});
  expect_slices(ops.reduce(ReduceOp::kMean, holes, "CPU:1").slices(), {.5F, .75F, 2.25F}, {5, 4, 9},
                Shape{10, 1});

  const PerReplica nothing({slices({}, {}, Shape{3, 1}, "CPU:0"), slices({}, {}, Shape{3, 1}, "CPU:1")});
  expect_slices(ops.reduce(ReduceOp::kSum, nothing, nothing).slices(1), {}, {}, Shape{3, 1});
}

// 4.2
TEST(Sparse, ChangingRowCountsAreReducedRightEveryTime) {
  ReductionToOneDevice ops;
  for (int round = 0; round < 300; ++round) {
    const auto rows = static_cast<std::size_t>(round % 149);
    std::vector<std::vector<float>> first(rows, {static_cast<float>(round)});
    const Indices indices(rows, 3);
    const PerReplica value(
        {slices(first, indices, Shape{4, 1}, "CPU:0"), slices({{-1}}, {2}, Shape{4, 1}, "CPU:1")});
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, "CPU:1");
    Floats values(rows, static_cast<float>(round));
    values.push_back(-1);
    ASSERT_EQ(contents<float>(result.slices().values), values) << round;
    ASSERT_EQ(contents<std::int64_t>(result.slices().indices).back(), 2) << round;
  }
}

// 4.5
TEST(Sparse, DenseShapeMayBeAbsent) {
  ReductionToOneDevice ops;
  const PerReplica none({slices({{1}}, {0}, {}, "CPU:0"), slices({{2}}, {1}, {}, "CPU:1")});
  expect_slices(ops.reduce(ReduceOp::kSum, none, none).slices(1), {1, 2}, {0, 1}, std::nullopt);
  const PerReplica second({slices({{1}}, {0}, {}, "CPU:0"), slices({{2}}, {1}, Shape{6, 1}, "CPU:1")});
  expect_slices(ops.reduce(ReduceOp::kSum, second, second).slices(0), {1, 2}, {0, 1}, Shape{6, 1});
}

// 4.4
TEST(Sparse, IndicesOfBothWidthsBecomeWide) {
  ReductionToOneDevice ops;
  const auto narrow = [](const std::vector<std::int32_t>& indices, const Device& device) {
    const Floats values(indices.size(), 1);
    return IndexedSlices{Tensor::from<float>(std::span<const float>(values),
                                             {static_cast<std::int64_t>(values.size()), 1}, device),
                         testing::vector_of(indices, device), Shape{9, 1}};
  };
  const PerReplica all_narrow({narrow({1, 2}, "CPU:0"), narrow({3}, "CPU:1")});
  EXPECT_EQ(contents<std::int32_t>(ops.reduce(ReduceOp::kSum, all_narrow, "CPU:0").slices().indices),
            (std::vector<std::int32_t>{1, 2, 3}));
  const PerReplica mixed({narrow({1, -2}, "CPU:0"),
                          slices({{1}}, {std::int64_t{1} << 40}, Shape{9, 1}, "CPU:1"),
                          narrow({8}, "CPU:2")});
  EXPECT_EQ(contents<std::int64_t>(ops.reduce(ReduceOp::kSum, mixed, "CPU:0").slices().indices),
            (Indices{1, -2, std::int64_t{1} << 40, 8}));
}

// 4.3
TEST(Sparse, MeanOfIntegersGivesFloats) {
  ReductionToOneDevice ops;
  const auto rows = [](std::vector<std::int32_t> values, const Device& device) {
    const auto count = static_cast<std::int64_t>(values.size());
    return IndexedSlices{
        Tensor::from<std::int32_t>(std::span<const std::int32_t>(values), {count, 1}, device),
        testing::vector_of(Indices(values.size(), 0), device),
        {}};
  };
  const PerReplica value({rows({1, 2}, "CPU:0"), rows({7}, "CPU:1")});
  EXPECT_EQ(contents<double>(ops.reduce(ReduceOp::kMean, value, "CPU:0").slices().values),
            (std::vector<double>{.5, 1, 3.5}));
}

// 4.8
TEST(Sparse, AccumulationFunctionIsPassedBy) {
  const ReductionToOneDevice unused;
  ReductionToOneDevice ops({}, [](std::span<const Tensor>) -> Tensor { throw std::runtime_error("called"); });
  const PerReplica value = two_sparse_replicas();
  expect_slices(ops.reduce(ReduceOp::kSum, value, "CPU:1").slices(), {1, 2, 3, 4, 5, 6}, {1, 1, 3},
                Shape{5, 2});
}

// 4.6, 9.8
TEST(MixedComponents, AreSummedAsDense) {
  ReductionToOneDevice ops;
  const PerReplica golden({Value(Tensor::from<float>({1, 1, 1, 1}, {2, 2}, "CPU:0")),
                           Value(slices({{2, 3}, {4, 5}}, {1, 1}, {}, "CPU:1"))});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, golden, "CPU:0")), (Floats{1, 1, 7, 9}));
  const PerReplica value({Value(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}, "CPU:0")),
                          Value(slices({{10, 20}, {1, 1}, {100, 200}}, {2, 0, 2}, Shape{3, 2}, "CPU:1"))});
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
  for (std::size_t d = 0; d < 2; ++d)
    EXPECT_EQ(contents<float>(sum.tensor(d)), (Floats{2, 3, 3, 4, 115, 226}));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, value, "CPU:0")),
            (Floats{1, 1.5F, 1.5F, 2, 57.5F, 113}));
}

// 5.4
TEST(MixedBatches, KeepTheirPositions) {
  ReductionToOneDevice ops;
  const PerReplica dense = testing::vectors<float>({{1, 2}, {3, 4}});
  const PerReplica first(
      {slices({{1}, {2}}, {0, 1}, Shape{10, 1}, "CPU:0"), slices({{3}}, {1}, Shape{10, 1}, "CPU:1")});
  const PerReplica second(
      {slices({{4}}, {4}, Shape{5, 1}, "CPU:0"), slices({{5}}, {0}, Shape{5, 1}, "CPU:1")});
  const PerReplica integers = testing::vectors<std::int32_t>({{7}, {8}});
  const std::vector<ValueDestination> pairs{{first, first},       {dense, dense},   {second, "CPU:1"},
                                            {integers, integers}, {dense, "CPU:0"}, {first, "CPU:3"}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs);
  ASSERT_EQ(results.size(), 6U);
  expect_slices(results[0].slices(1), {1, 2, 3}, {0, 1, 1}, Shape{10, 1});
  EXPECT_EQ(contents<float>(results[1].tensor(1)), (Floats{4, 6}));
  expect_slices(results[2].slices(), {4, 5}, {4, 0}, Shape{5, 1});
  EXPECT_EQ(contents<std::int32_t>(results[3].tensor(0)), std::vector<std::int32_t>{15});
  EXPECT_EQ(contents<float>(results[4].tensor()), (Floats{4, 6}));
  expect_slices(results[5].slices(), {1, 2, 3}, {0, 1, 1}, Shape{10, 1});
}

TEST(Dense, NumbersOfTheCollectiveClass) {
  ReductionToOneDevice ops;
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, testing::scalars<float>({1}), "CPU:0")), Floats{1});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, testing::scalars<float>({1, 2}), "CPU:0")),
            Floats{1.5F});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, testing::scalars<float>({1, 2, 3, 4}), "CPU:0")),
            Floats{2.5F});
  const PerReplica four = testing::vectors<float>({{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, four, four).tensor(3)), (Floats{16, 20}));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, four, four).tensor(3)), (Floats{4, 5}));
}

// 2.6
TEST(Variables, AreValuesAndDestinationsAndStayAsTheyAre) {
  ReductionToOneDevice ops;
  const std::vector<Device> devices{"CPU:1", "CPU:0"};
  const MirroredVariable variable("v", testing::scalar(1.0F, "CPU:0"), devices);
  for (const bool batched : {false, true}) {
    const Mirrored mean = batched
                              ? ops.batch_reduce(ReduceOp::kMean, testing::one_pair(variable, variable)).at(0)
                              : ops.reduce(ReduceOp::kMean, variable, variable);
    ASSERT_EQ(mean.size(), 2U);
    EXPECT_EQ(mean.tensor(0).device().canonical(), devices[0].canonical());
    EXPECT_EQ(contents<float>(mean.tensor(0)), Floats{1});
    EXPECT_EQ(contents<float>(mean.tensor(1)), Floats{1});
  }
  const Mirrored sum = ops.reduce(ReduceOp::kSum, variable, variable);
  EXPECT_EQ(contents<float>(sum.tensor(1)), Floats{2});
  for (const Tensor& component : variable.components()) EXPECT_EQ(contents<float>(component), Floats{1});
  const Variable single("w", testing::scalar(3.0F, "CPU:4"));
  EXPECT_EQ(testing::devices_of(ops.reduce(ReduceOp::kSum, variable, single)),
            std::vector<Device>{Device("CPU:4").canonical()});
  EXPECT_EQ(contents<float>(single.value()), Floats{3});
}

// 2.5
TEST(Mirrored, IsAValueOfItsCopies) {
  ReductionToOneDevice ops;
  const Mirrored two = ops.broadcast(testing::scalar(2.0F, "CPU:0"), testing::scalars<float>({0, 0, 0}));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, two, "CPU:0")), Floats{6});
}

}  // namespace
}  // namespace onesum
