// Rule 4.7 with results of the caller's (5.7, 5.9), and what is said of merged rows (5.10).
#include <algorithm>
#include <source_location>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/merged_rows.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::expect_invalid;
using testing::merging;
using testing::slices;

struct Into {
  PerReplica value{{slices({{1}, {2}, {3}}, {4, 0, 4}, Shape{5, 1}, "CPU:0"),
                    slices({{10}, {20}, {30}}, {0, 1, 0}, Shape{5, 1}, "CPU:1")}};
  ReductionToOneDevice ops;

  static IndexedSlices blank(std::int64_t rows, const char* device) {
    return {
        Tensor::empty(DType::kFloat32, {rows, 1}, device), Tensor::empty(DType::kInt64, {rows}, device), {}};
  }
  void refuse(const PerReplica& result, std::initializer_list<std::string_view> parts, bool by_prepare = true,
              std::source_location where = std::source_location::current()) {
    const std::vector<PerReplica> values{value};
    std::vector<PerReplica> results{result};
    expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, results, merging()); }, parts, where);
    if (by_prepare) {
      expect_invalid([&] { ops.prepare(ReduceOp::kSum, values, results, merging()); }, parts, where);
    }
  }
};

// 5.7, 8.14
TEST(MergeDuplicatesInto, RefusesResultsThatDoNotFit) {
  Into into;
  into.refuse(into.blank(2, "CPU:0"), {"pair 0: result on", "CPU:0", "2 row(s)", "expected 3", "6 row(s)"},
              false);
  into.refuse(into.blank(6, "CPU:1"), {"CPU:1", "6 row(s)", "expected 3"}, false);
  into.refuse(Tensor::empty(DType::kFloat32, {3, 1}, "CPU:0"), {"pair 0: result on", "dense", "sparse"});
  IndexedSlices result = into.blank(3, "CPU:0");
  result.values = Tensor::empty(DType::kFloat64, {3, 1}, "CPU:0");
  into.refuse(result, {"(values) is of float64", "expected float32"});
  result = into.blank(3, "CPU:0");
  result.indices = Tensor::empty(DType::kInt32, {3}, "CPU:0");
  into.refuse(result, {"(indices) is of int32", "expected int64"});
  result.values = Tensor::empty(DType::kFloat32, {3, 2}, "CPU:0");
  result.indices = Tensor::empty(DType::kInt64, {3}, "CPU:0");
  into.refuse(result, {"[3,2]", "expected [3,1]"});
  into.refuse(PerReplica({into.blank(3, "CPU:0"), into.blank(3, "CPU:0")}), {"twice"});
  result = into.blank(3, "CPU:0");
  into.refuse(PerReplica({result, IndexedSlices{Tensor::borrow(result.values.data<float>().data(),
                                                               DType::kFloat32, {3, 1}, "CPU:1"),
                                                Tensor::empty(DType::kInt64, {3}, "CPU:1"),
                                                {}}}),
              {"pair 0: result on", "share memory"});
  // The values are a replica's, the indices are not.
  result.values = into.value.slices(0).values;
  into.refuse(result, {"pair 0: replica on", "pair 0: result on", "share memory"});
  EXPECT_EQ(contents<float>(into.value.slices(0).values), (std::vector<float>{1, 2, 3}));
}

// A refused call has changed nothing: also not the dense pairs of its batch.
TEST(MergeDuplicatesInto, IsRefusedBeforeAnyWork) {
  Into into;
  const std::vector<PerReplica> values{testing::vectors<float>({{1}, {2}}), into.value};
  std::vector<PerReplica> results{testing::vectors<float>({{-1}}), into.blank(4, "CPU:0")};
  expect_invalid([&] { into.ops.batch_reduce_into(ReduceOp::kSum, values, results, merging()); }, {"pair 1"});
  EXPECT_EQ(contents<float>(results[0].tensor()), std::vector<float>{-1});
}

TEST(MergeDuplicatesInto, ReplacesAReplica) {
  Into into;
  const std::vector<PerReplica> values{into.value};
  // Replica 1 is replaced, and as many rows as it has are left.
  std::vector<PerReplica> results{PerReplica({into.blank(3, "CPU:0"), into.value.slices(1)})};
  into.ops.batch_reduce_into(ReduceOp::kSum, values, results, merging());
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(results[0].slices(d).values), (std::vector<float>{42, 20, 4}));
    EXPECT_EQ(contents<std::int64_t>(results[0].slices(d).indices), (std::vector<std::int64_t>{0, 1, 4}));
  }
}

// 5.9
TEST(MergeDuplicatesInto, PreparedLooksAtTheIndicesInEveryRun) {
  Into into;
  const std::vector<PerReplica> values{into.value};
  std::vector<PerReplica> results{into.blank(3, "CPU:0")};
  PreparedReduce prepared = into.ops.prepare(ReduceOp::kSum, values, results, merging());
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{42, 20, 4}));
  Tensor indices = into.value.slices(0).indices;
  std::ranges::fill(indices.data<std::int64_t>(), 3);
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{40, 20, 6}));
  EXPECT_EQ(contents<std::int64_t>(results[0].slices().indices), (std::vector<std::int64_t>{0, 1, 3}));
  std::ranges::fill(indices.data<std::int64_t>(), 1);
  expect_invalid([&] { prepared.run(); }, {"pair 0", "3 row(s)", "expected 2"});
  expect_invalid([&] { prepared.start().wait(); }, {"pair 0", "3 row(s)", "expected 2"});
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{40, 20, 6}));
}

// 5.10
TEST(MergeDuplicates, IsToldInWords) {
  Into into;
  const std::vector<ValueDestination> pairs{{into.value, into.value}};
  const std::string words = into.ops.explain(ReduceOp::kMean, pairs, merging());
  for (const char* part : {"rows of one index are added in float32", "canonical order", "divided by 2",
                           "to 2 destinations as", "each index is kept once"}) {
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
  }
  EXPECT_EQ(into.ops.explain(ReduceOp::kMean, pairs).find("rows of one index"), std::string::npos);
  into.ops.plan(ReduceOp::kMean, pairs, merging()).verify();
  into.ops.reduce(ReduceOp::kMean, into.value, "CPU:0", merging());
  EXPECT_EQ(into.ops.last_call().number, 1);
}

}  // namespace
}  // namespace onesum
