// Rule 4.7: duplicate rows of IndexedSlices, merged; bit by bit as plain code adds them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/merged_rows.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::expect_invalid;
using testing::Fill;
using testing::merged_rows;
using testing::MergedRows;
using testing::merging;
using testing::random_slices;
using testing::slices;

// Every type and number of replicas, with few and many rows.
std::vector<PerReplica> all_kinds() {
  std::vector<PerReplica> values;
  std::uint64_t seed = 0;
  for (const DType dtype : testing::kSummable) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 6U, 7U, 16U}) {
      for (const Fill how : {Fill::kPlain, Fill::kWild}) {
        values.push_back(random_slices({dtype, n, 12, 5, {3}}, ++seed, how));              // many of each
        values.push_back(random_slices({dtype, n, 9, 40, {}}, ++seed, how));               // some; scalars
        values.push_back(random_slices({dtype, n, 3, 1000000000, {2, 17}}, ++seed, how));  // hardly any
      }
      values.push_back(
          random_slices({dtype, n, 4, 3, {0, 2}}, ++seed, Fill::kPlain));            // rows without elements
      values.push_back(random_slices({dtype, n, 0, 3, {2}}, ++seed, Fill::kPlain));  // no rows
    }
  }
  values.push_back(
      random_slices({DType::kFloat32, 3, 3, 2, {90001}}, ++seed, Fill::kPlain));  // rows in pieces
  values.push_back(random_slices({DType::kInt8, 3, 20000, 7000, {5}}, ++seed, Fill::kPlain));
  values.push_back(random_slices({DType::kFloat16, 6, 300, 70000, {40}}, ++seed, Fill::kPlain));
  return values;
}

TEST(MergeDuplicates, HasTheBitsOfPlainCode) {
  const std::vector<PerReplica> values = all_kinds();
  const PerReplica dense = testing::random_value(DType::kFloat32, {33}, cpus(3), 1);
  ReductionToOneDevice ops;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    std::vector<ValueDestination> pairs;
    std::vector<PerReplica> inputs;
    std::vector<PerReplica> results;
    std::vector<MergedRows> all;
    for (const PerReplica& value : values) {
      all.push_back(merged_rows(op, value));
      pairs.push_back({value, value});
      inputs.push_back(value);
      results.push_back(testing::blank_results(op, value, all.back(), value.devices()));
    }
    pairs.push_back({dense, "CPU:1"});
    inputs.push_back(dense);
    results.push_back(testing::blank_results(op, dense, {"CPU:1"}));
    const std::vector<std::byte> sum = testing::bytes_of(ops.reduce(op, dense, "CPU:1"));

    const auto check = [&](const auto& found, const std::string& way) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string what = way + ", value " + std::to_string(i) + " of " +
                                 std::string(to_string(values[i].slices(0).values.dtype())) + ", " +
                                 std::to_string(values[i].size()) + " replicas";
        testing::expect_merged(found[i], op, values[i], all[i], what);
      }
      EXPECT_EQ(testing::bytes_of(found[values.size()].tensor()), sum) << way;
    };
    const std::vector<Mirrored> returned = ops.batch_reduce(op, pairs, merging());
    check(returned, "batch_reduce");
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(returned[i].devices().size(), values[i].size());
      for (std::size_t d = 0; d < returned[i].size(); ++d) {
        ASSERT_EQ(returned[i].slices(d).dense_shape, testing::dense_shape(values[i]));
        ASSERT_EQ(returned[i].slices(d).values.device().canonical(), values[i].devices()[d].canonical());
      }
    }
    check(ops.batch_reduce_async(op, pairs, merging()).results(), "batch_reduce_async");
    ops.batch_reduce_into(op, inputs, results, merging());
    check(results, "batch_reduce_into");
    for (std::size_t i = 0; i < values.size(); i += 13) {
      testing::expect_merged(ops.reduce(op, values[i], "CPU:9", merging()), op, values[i], all[i], "reduce");
    }
  }
}

// 4.7, 9.9
TEST(MergeDuplicates, EachRowOnceAscending) {
  ReductionToOneDevice ops;
  const PerReplica value(
      {slices({{5, 6}}, {3}, Shape{5, 2}, "CPU:0"), slices({{1, 2}, {3, 4}}, {3, 1}, Shape{5, 2}, "CPU:1")});
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, "CPU:0", merging());
  EXPECT_EQ(contents<float>(sum.slices().values), (std::vector<float>{3, 4, 6, 8}));
  EXPECT_EQ(contents<std::int64_t>(sum.slices().indices), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(sum.slices().dense_shape, (Shape{5, 2}));
  // By the number of replicas, not of those that have the row.
  const Mirrored mean = ops.reduce(ReduceOp::kMean, value, "CPU:0", merging());
  EXPECT_EQ(contents<float>(mean.slices().values), (std::vector<float>{1.5F, 2, 3, 4}));

  const PerReplica golden(
      {slices({{1, 2}}, {1}, Shape{5, 2}, "CPU:0"), slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, "CPU:1")});
  const auto merged_values = [&](ReduceOp op) {
    return contents<float>(ops.reduce(op, golden, golden, merging()).slices(1).values);
  };
  EXPECT_EQ(merged_values(ReduceOp::kSum), (std::vector<float>{4, 6, 5, 6}));
  EXPECT_EQ(merged_values(ReduceOp::kMean), (std::vector<float>{2, 3, 2.5F, 3}));
}

// Rows of one element at index 0, of each replica.
float merged(const std::vector<std::vector<float>>& replicas, ReduceOp op = ReduceOp::kSum) {
  std::vector<Value> components;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    std::vector<std::vector<float>> rows;
    for (const float element : replicas[r]) rows.push_back({element});
    components.emplace_back(Value(IndexedSlices{
        Tensor::from<float>(std::span<const float>(replicas[r]), {static_cast<std::int64_t>(rows.size()), 1},
                            cpus(r + 1).back()),
        Tensor::from<std::int32_t>(std::vector<std::int32_t>(rows.size(), 0),
                                   {static_cast<std::int64_t>(rows.size())}, cpus(r + 1).back()),
        std::nullopt}));
  }
  ReductionToOneDevice ops;
  return contents<float>(
             ops.reduce(op, PerReplica(std::move(components)), "CPU:0", merging()).slices().values)
      .at(0);
}

TEST(MergeDuplicates, AddsInItsOrder) {
  EXPECT_EQ(merged({{1e8F, 1, -1e8F}}), 0);  // by position
  EXPECT_EQ(merged({{1e8F, -1e8F, 1}}), 1);
  EXPECT_EQ(merged({{1e8F}, {1}, {-1e8F}, {1}}), 0);  // the tree over replicas
  EXPECT_EQ(merged({{1e8F}, {}, {-1e8F}, {1}}), 0);   // as it is with one absent: 0 + (2 + 3)
  EXPECT_EQ(merged({{1e8F}, {-1e8F}, {}, {1}}), 1);
  EXPECT_EQ(merged({{1, 1e8F}, {-1e8F}}), 0);  // inside each replica first
  EXPECT_EQ(merged({{1}, {1e8F, -1e8F}}), 1);
}

TEST(MergeDuplicates, NothingIsAddedForWhoIsAbsent) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_TRUE(std::signbit(merged({{-0.F}, {}, {}}, op)));
    EXPECT_TRUE(std::signbit(merged({{}, {-0.F, -0.F}, {}, {-0.F}, {}}, op)));
    EXPECT_FALSE(std::signbit(merged({{-0.F}, {0.F}}, op)));
    EXPECT_TRUE(std::isnan(merged({{1}, {}, {std::numeric_limits<float>::quiet_NaN(), 2}}, op)));
  }
}

// More occurrences than any number of replicas.
TEST(MergeDuplicates, TakesARowAMillionTimes) {
  constexpr std::int64_t kRows = 400000;
  std::vector<Value> replicas;
  for (std::size_t r = 0; r < 3; ++r) {
    const std::string device = cpus(r + 1).back();
    Tensor indices = Tensor::empty(DType::kInt32, {kRows}, device);
    std::ranges::fill(indices.data<std::int32_t>(), 7);
    replicas.emplace_back(
        IndexedSlices{testing::random_tensor(DType::kFloat16, {kRows, 3}, device, r), indices, std::nullopt});
  }
  const PerReplica value(std::move(replicas));
  ReductionToOneDevice ops;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    testing::expect_merged(ops.reduce(op, value, "CPU:0", merging()), op, value, merged_rows(op, value),
                           "a million");
  }
}

TEST(MergeDuplicates, WritesManyDestinations) {
  const PerReplica value = random_slices({DType::kBFloat16, 5, 20, 9, {6}}, 3, Fill::kPlain);
  std::vector<Tensor> marks;
  for (const std::string& device : cpus(40)) marks.push_back(testing::scalar<float>(0, device));
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kMean, value, PerReplica(std::move(marks)), merging());
  ASSERT_EQ(result.size(), 40);
  testing::expect_merged(result, ReduceOp::kMean, value, merged_rows(ReduceOp::kMean, value),
                         "40 destinations");
}

// 8.11
TEST(MergeDuplicates, RefusesIndicesThatNameNoRow) {
  ReductionToOneDevice ops;
  const auto refuse = [&](const PerReplica& value, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, "CPU:0", merging()); }, parts);
  };
  refuse(PerReplica({slices({{1}}, {0}, {}, "CPU:0"), slices({{1}, {2}}, {4, 5}, Shape{5, 1}, "CPU:1")}),
         {"value: replica 1", "row 1", "index 5", "less than 5"});
  // The dense shape is the value's, whichever replica names it.
  refuse(PerReplica({slices({{1}}, {9}, {}, "CPU:0"), slices({}, {}, Shape{5, 1}, "CPU:1")}),
         {"replica 0", "index 9", "less than 5"});
  refuse(PerReplica(slices({{1}}, {-1}, {}, "CPU:0")), {"replica 0", "row 0", "index -1", "0 or more"});
  refuse(PerReplica({slices({{1}}, {0}, {}, "CPU:0"), slices({{1, 2}}, {0}, {}, "CPU:1")}),
         {"[1,2]", "[1,1]"});
  expect_invalid(
      [&] { ops.reduce(ReduceOp::kSum, slices({{1}}, {0}, {}, "CPU:0"), "/job:other/cpu:0", merging()); },
      {"value: destination", "/job:other"});
}

// 4.6, 4.8: a value that is dense in part has a dense sum; the function does not see sparse values.
TEST(MergeDuplicates, LeavesOthersAlone) {
  int calls = 0;
  ReductionToOneDevice ops({}, [&](std::span<const Tensor> tensors) {
    ++calls;
    return tensors.front();
  });
  const PerReplica mixed(std::vector<Value>{Tensor::from<float>({1, 1}, {2, 1}, "CPU:0"),
                                            slices({{2}, {4}}, {1, 1}, {}, "CPU:1")});
  const PerReplica sparse({slices({{1}, {2}}, {1, 1}, {}, "CPU:0"), slices({{3}}, {0}, {}, "CPU:1")});
  const std::vector<ValueDestination> pairs{{mixed, "CPU:0"}, {sparse, "CPU:1"}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs, merging());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(contents<float>(results[0].tensor()), (std::vector<float>{1, 1}));
  EXPECT_EQ(contents<float>(results[1].slices().values), (std::vector<float>{3, 3}));
  ReductionToOneDevice plain;
  EXPECT_EQ(contents<float>(plain.batch_reduce(ReduceOp::kSum, pairs, merging())[0].tensor()),
            (std::vector<float>{1, 7}));
}

}  // namespace
}  // namespace onesum
