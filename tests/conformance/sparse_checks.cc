#include "conformance/sparse_checks.h"

#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "support/tensors.h"

namespace onesum::testing {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;

// What a replica brings.
struct Rows {
  std::vector<Floats> values;
  Indices indices;
};

using RowsOf = std::function<Rows(std::size_t replica)>;

// The numbers of 9.7, by turns.
Rows golden_rows(std::size_t replica) {
  if (replica % 2 == 0) return {{{1, 2}}, {1}};
  return {{{3, 4}, {5, 6}}, {1, 3}};
}
const Shape kGoldenShape{5, 2};

// Three rows, none, one and so on: values by replica, indices in no order.
Rows uneven_rows(std::size_t replica) {
  Rows rows;
  for (std::size_t i = 0; i < (3 * replica + 3) % 4; ++i) {
    rows.values.push_back({static_cast<float>(10 * replica + i)});
    rows.indices.push_back(static_cast<std::int64_t>((7 * replica + 3 * i + 2) % 10));
  }
  return rows;
}

PerReplica sparse_value(const Stage& stage, const RowsOf& rows_of, const std::optional<Shape>& shape) {
  return stage.value([&](std::size_t replica, const Device& device) {
    const Rows rows = rows_of(replica);
    return slices(rows.values, rows.indices, shape, device);
  });
}

// The rows of all replicas, one after the other, divided.
struct Concatenation {
  Floats values;
  Indices indices;
};

Concatenation concatenation(const Stage& stage, const RowsOf& rows_of, float divisor) {
  Concatenation all;
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    const Rows rows = rows_of(r);
    for (const Floats& row : rows.values) {
      for (const float value : row) all.values.push_back(value / divisor);
    }
    all.indices.insert(all.indices.end(), rows.indices.begin(), rows.indices.end());
  }
  return all;
}

float divisor_of(ReduceOp op, const Stage& stage) {
  return op == ReduceOp::kSum ? 1.0F : static_cast<float>(stage.replicas());
}

void expect_slices(const Stage& stage, const DistributedValues& found, const Destination& to,
                   const Concatenation& expected, const std::optional<Shape>& shape) {
  stage.expect_on(found, to);
  for (std::size_t d = 0; d < found.size(); ++d) {
    EXPECT_EQ(contents<float>(found.slices(d).values), expected.values);
    EXPECT_EQ(contents<std::int64_t>(found.slices(d).indices), expected.indices);
    EXPECT_EQ(found.slices(d).dense_shape, shape);
    EXPECT_EQ(found.slices(d).indices.device(), found.slices(d).values.device());
  }
}

void check_rows(CrossDeviceOps& ops, const Stage& stage, const RowsOf& rows_of,
                const std::optional<Shape>& shape) {
  const PerReplica value = sparse_value(stage, rows_of, shape);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const Concatenation expected = concatenation(stage, rows_of, divisor_of(op, stage));
    for (const Destination& to : {Destination(value), Destination(stage.host)}) {
      expect_slices(stage, ops.reduce(op, value, to), to, expected, shape);
      expect_slices(stage, ops.batch_reduce(op, one_pair(value, to)).at(0), to, expected, shape);
    }
  }
}

// Replica 0 is dense, [[1,1],[1,1]]; the others by turns have two rows at 1, and are dense.
Value mixed_component(std::size_t replica, const Device& device) {
  if (replica % 2 == 0) return Tensor::from<float>({1, 1, 1, 1}, {2, 2}, device);
  return slices({{2, 3}, {4, 5}}, {1, 1}, {}, device);
}

Floats mixed_sum(const Stage& stage, float divisor) {
  const auto dense = static_cast<float>((stage.replicas() + 1) / 2);
  const auto sparse = static_cast<float>(stage.replicas() / 2);
  return {dense / divisor, dense / divisor, (dense + 6 * sparse) / divisor, (dense + 8 * sparse) / divisor};
}

void expect_dense(const Stage& stage, const DistributedValues& found, const Destination& to,
                  const Floats& expected) {
  stage.expect_on(found, to);
  for (std::size_t d = 0; d < found.size(); ++d) EXPECT_EQ(contents<float>(found.tensor(d)), expected);
}

Concatenation merged(const Stage& stage, float divisor) {
  std::map<std::int64_t, Floats> sums;
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    const Rows rows = golden_rows(r);
    for (std::size_t i = 0; i < rows.indices.size(); ++i) {
      Floats& sum = sums.try_emplace(rows.indices[i], Floats(2, 0)).first->second;
      for (std::size_t c = 0; c < 2; ++c) sum[c] += rows.values[i][c];
    }
  }
  Concatenation all;
  for (const auto& [index, sum] : sums) {
    all.indices.push_back(index);
    for (const float value : sum) all.values.push_back(value / divisor);
  }
  return all;
}

}  // namespace

void check_concatenation(CrossDeviceOps& ops, const Stage& stage) {
  check_rows(ops, stage, golden_rows, kGoldenShape);
}

void check_uneven_rows(CrossDeviceOps& ops, const Stage& stage) {
  for (const std::optional<Shape>& shape : {std::optional<Shape>(Shape{10, 1}), std::optional<Shape>()}) {
    check_rows(ops, stage, uneven_rows, shape);
    check_rows(ops, stage, [](std::size_t) { return Rows{}; }, shape);
  }
  // Of the last replica's alone.
  const PerReplica value = stage.value([&](std::size_t replica, const Device& device) {
    const bool is_last = replica + 1 == stage.replicas();
    return slices({{1}}, {2}, is_last ? std::optional<Shape>(Shape{6, 1}) : std::nullopt, device);
  });
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
  for (std::size_t d = 0; d < sum.size(); ++d) EXPECT_EQ(sum.slices(d).dense_shape, (Shape{6, 1}));
}

void check_types_of_slices(CrossDeviceOps& ops, const Stage& stage) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  // One row for each replica, of which `wide` has an index that only 64 bits hold.
  const auto value_with = [&](std::size_t wide) {
    return stage.value([&](std::size_t replica, const Device& device) {
      const auto number = static_cast<std::int32_t>(replica) - 1;
      return IndexedSlices{Tensor::from<std::int32_t>({number}, {1, 1}, device),
                           replica == wide ? Tensor::from<std::int64_t>({kFar}, {1}, device)
                                           : Tensor::from<std::int32_t>({number}, {1}, device),
                           Shape{9, 1}};
    });
  };
  std::vector<std::int32_t> numbers;
  std::vector<double> means;
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    numbers.push_back(static_cast<std::int32_t>(r) - 1);
    means.push_back(numbers.back() / static_cast<double>(stage.replicas()));
  }
  Indices widened(numbers.begin(), numbers.end());
  widened.back() = kFar;
  const PerReplica narrow = value_with(stage.replicas());
  const Mirrored sum = ops.reduce(ReduceOp::kSum, narrow, narrow);
  const PerReplica mixed = value_with(stage.replicas() - 1);
  const Mirrored mean = ops.reduce(ReduceOp::kMean, mixed, mixed);
  for (std::size_t d = 0; d < stage.devices.size(); ++d) {
    EXPECT_EQ(contents<std::int32_t>(sum.slices(d).values), numbers);
    EXPECT_EQ(contents<std::int32_t>(sum.slices(d).indices), numbers);
    EXPECT_EQ(contents<double>(mean.slices(d).values), means);
    EXPECT_EQ(contents<std::int64_t>(mean.slices(d).indices), widened);
  }
}

void check_mixed_components(CrossDeviceOps& ops, const Stage& stage) {
  const PerReplica value = stage.value(mixed_component);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const Floats expected = mixed_sum(stage, divisor_of(op, stage));
    for (const Destination& to : {Destination(value), Destination(stage.host)}) {
      expect_dense(stage, ops.reduce(op, value, to), to, expected);
    }
  }
}

void check_mixed_batch(CrossDeviceOps& ops, const Stage& stage) {
  const PerReplica dense = stage.value([](std::size_t replica, const Device& device) {
    return vector_of<float>({static_cast<float>(replica), 1}, device);
  });
  const PerReplica first = sparse_value(stage, golden_rows, kGoldenShape);
  const PerReplica second = sparse_value(stage, uneven_rows, Shape{10, 1});
  const PerReplica integers =
      stage.value([](std::size_t, const Device& device) { return vector_of<std::int32_t>({7}, device); });
  const PerReplica mixed = stage.value(mixed_component);
  const std::vector<ValueDestination> pairs{{first, first},       {dense, dense}, {second, stage.host},
                                            {integers, integers}, {mixed, mixed}, {dense, stage.host}};
  const std::vector<Mirrored> sums = ops.batch_reduce(ReduceOp::kSum, pairs);
  ASSERT_EQ(sums.size(), pairs.size());
  const auto n = static_cast<float>(stage.replicas());
  expect_slices(stage, sums[0], first, concatenation(stage, golden_rows, 1), kGoldenShape);
  expect_dense(stage, sums[1], dense, {n * (n - 1) / 2, n});
  expect_slices(stage, sums[2], stage.host, concatenation(stage, uneven_rows, 1), Shape{10, 1});
  for (std::size_t d = 0; d < stage.devices.size(); ++d) {
    EXPECT_EQ(contents<std::int32_t>(sums[3].tensor(d)),
              std::vector<std::int32_t>{7 * static_cast<std::int32_t>(stage.replicas())});
  }
  expect_dense(stage, sums[4], mixed, mixed_sum(stage, 1));
  expect_dense(stage, sums[5], stage.host, {n * (n - 1) / 2, n});
}

void check_merged_rows(CrossDeviceOps& ops, const Stage& stage) {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  const std::vector<PerReplica> values{sparse_value(stage, golden_rows, kGoldenShape)};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const Concatenation expected = merged(stage, divisor_of(op, stage));
    for (const Destination& to : {Destination(values[0]), Destination(stage.host)}) {
      expect_slices(stage, ops.reduce(op, values[0], to, options), to, expected, kGoldenShape);
    }
    const auto rows = static_cast<std::int64_t>(expected.indices.size());
    std::vector<PerReplica> results{stage.value([&](std::size_t, const Device& device) {
      return IndexedSlices{filled_with(0xa5, DType::kFloat32, {rows, 2}, device),
                           filled_with(0xa5, DType::kInt64, {rows}, device), kGoldenShape};
    })};
    ops.batch_reduce_into(op, values, results, options);
    expect_slices(stage, results[0], values[0], expected, kGoldenShape);
  }
}

void check_sparse(CrossDeviceOps& ops, const Stage& stage) {
  SCOPED_TRACE(stage.name());
  check_concatenation(ops, stage);
  check_uneven_rows(ops, stage);
  check_types_of_slices(ops, stage);
  check_mixed_components(ops, stage);
  check_mixed_batch(ops, stage);
  check_merged_rows(ops, stage);
}

}  // namespace onesum::testing
