// docs/semantics.md, 3.11 to 3.13. Products, minima, maxima and operations on bits, through every kind of
// call. call.
#include "support/operations.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "base/combine.h"
#include "support/bits.h"
#include "support/canonical_sum.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::all_hold;
using testing::contents;
using testing::cpus;
using testing::expect_invalid;
using ::testing::HasSubstr;
using testing::one_pair;
using testing::OperationOn;
using testing::random_value;
using testing::scalars;

std::vector<std::byte> expected_of(const OperationOn& what, const PerReplica& value) {
  std::vector<std::vector<std::byte>> replicas;
  for (std::size_t r = 0; r < value.size(); ++r) {
    const auto* bytes = static_cast<const std::byte*>(value.tensor(r).memory());
    replicas.emplace_back(bytes, bytes + value.tensor(r).bytes());
  }
  return testing::canonical_result(what.op, what.dtype, replicas);
}

std::string name_of(const OperationOn& what) {
  return std::string(onesum::name_of(what.op)) + " of " + std::string(to_string(what.dtype));
}

std::unique_ptr<CrossDeviceOps> ops_of(const std::string& algorithm) {
  if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
  return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
}

class OperationsBy : public ::testing::TestWithParam<const char*> {};

// One object for all: calls that differ in nothing but the operation are not taken for each other.
TEST_P(OperationsBy, HaveTheBitsOfTheCanonicalTree) {
  const std::unique_ptr<CrossDeviceOps> ops = ops_of(GetParam());
  std::uint64_t seed = 0;
  for (const std::size_t n : {1U, 2U, 3U, 5U, 8U}) {
    for (const std::int64_t elements : {0, 1, 257}) {
      for (const OperationOn& what : testing::other_operations()) {
        const PerReplica value = random_value(what.dtype, {elements}, cpus(n), ++seed, testing::Fill::kWild);
        ASSERT_TRUE(all_hold(ops->reduce(what.op, value, value), expected_of(what, value)))
            << name_of(what) << " of " << n << " replicas, " << elements << " elements";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OperationsBy,
                         ::testing::Values("one_device", "auto", "hierarchical_copy", "rechd", "pscpu"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Operations, InBatchesIntoMemoryAndPrepared) {
  AllReduceCrossDeviceOps ops("auto");
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
    std::vector<ValueDestination> pairs;
    std::vector<PerReplica> values;
    std::vector<std::vector<std::byte>> expected;
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt8, DType::kBool}) {
      values.push_back(random_value(dtype, {103}, cpus(3), expected.size()));
      pairs.push_back({values.back(), values.back()});
      expected.push_back(expected_of({op, dtype}, values.back()));
    }
    const std::vector<Mirrored> results = ops.batch_reduce(op, pairs);
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(all_hold(results[i], expected[i])) << i;
    Work work = ops.batch_reduce_async(op, pairs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(all_hold(work.results()[i], expected[i])) << i;
    }
    PreparedReduce prepared = ops.prepare(op, values, values);
    prepared.run();  // in place
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(all_hold(values[i], expected[i])) << i;
  }
}

// 3.12, in figures.
TEST(Operations, NanWinsAndZerosHaveAnOrder) {
  ReductionToOneDevice ops;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto of = [&](ReduceOp op, const std::vector<float>& values) {
    return contents<float>(ops.reduce(op, scalars<float>(values), "CPU:0"))[0];
  };
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(of(op, {nan, 1, 2})));
    EXPECT_TRUE(std::isnan(of(op, {1, nan, 2})));
    EXPECT_TRUE(std::isnan(of(op, {1, 2, nan})));
  }
  EXPECT_TRUE(std::signbit(of(ReduceOp::kMin, {0.0F, -0.0F, 0.0F})));
  EXPECT_FALSE(std::signbit(of(ReduceOp::kMax, {-0.0F, 0.0F, -0.0F})));
  EXPECT_EQ(of(ReduceOp::kMin, {3, -4, 2}), -4);
  EXPECT_EQ(of(ReduceOp::kMax, {3, -4, 2}), 3);
  EXPECT_EQ(of(ReduceOp::kProduct, {3, -4, 2}), -24);
}

// 3.13
TEST(Operations, ProductsOfIntegersWrapAndOfBoolsAreAnd) {
  ReductionToOneDevice ops;
  EXPECT_EQ(contents<std::int8_t>(ops.reduce(ReduceOp::kProduct, scalars<std::int8_t>({100, 3}), "CPU:0")),
            std::vector<std::int8_t>{44});
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(
      contents<std::int64_t>(ops.reduce(ReduceOp::kProduct, scalars<std::int64_t>({least, -1}), "CPU:0")),
      std::vector<std::int64_t>{least});
  const auto of = [&](ReduceOp op, const std::vector<bool>& values) {
    return ops.reduce(op, scalars<bool>(values), "CPU:0").tensor().data<bool>()[0];
  };
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kBitAnd}) {
    EXPECT_TRUE(of(op, {true, true, true}));
    EXPECT_FALSE(of(op, {true, false, true}));
  }
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kBitOr}) {
    EXPECT_TRUE(of(op, {false, false, true}));
    EXPECT_FALSE(of(op, {false, false, false}));
  }
  EXPECT_TRUE(of(ReduceOp::kBitXor, {true, true, true}));
  EXPECT_FALSE(of(ReduceOp::kBitXor, {true, true, false}));
}

TEST(Operations, TypesThatHaveThemNotAreRefused) {
  AllReduceCrossDeviceOps ops("auto");
  const auto refused = [&](ReduceOp op, DType dtype, const std::string& words) {
    const PerReplica value = random_value(dtype, {3}, cpus(2), 1);
    expect_invalid([&] { ops.reduce(op, value, value); }, {"value: " + words});
    expect_invalid([&] { ops.plan(op, one_pair(value, value)); }, {"pair 0: " + words});
  };
  refused(ReduceOp::kMin, DType::kComplex64, "complex64 has no min; it has sum, mean, product");
  refused(ReduceOp::kBitAnd, DType::kFloat16, "float16 has no bitand; it has sum, mean, product, min, max");
  refused(ReduceOp::kMean, DType::kBool, "bool has no mean; it has product, min, max, bitand, bitor, bitxor");
}

// Rows of several replicas are added: there is no minimum of them, whether they are merged or mixed with
// tensors.
TEST(Operations, SparseValuesAreRefused) {
  ReductionToOneDevice ops;
  const IndexedSlices first = testing::slices({{1, 2}}, {1}, {}, Device("CPU:0"));
  const IndexedSlices second = testing::slices({{3, 4}}, {0}, {}, Device("CPU:1"));
  const PerReplica sparse(std::vector<Value>{first, second});
  const PerReplica mixed(
      std::vector<Value>{first, Tensor::from<float>({1, 2, 3, 4}, {2, 2}, Device("CPU:1"))});
  CommunicationOptions merging;
  merging.sparse_rows = SparseRows::kMergeDuplicates;
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kBitXor}) {
    for (const PerReplica& value : {sparse, mixed}) {
      for (const CommunicationOptions& options : {CommunicationOptions{}, merging}) {
        expect_invalid([&] { ops.reduce(op, value, "CPU:0", options); },
                       {"value: replica 0 is IndexedSlices, of which there is no " +
                        std::string(onesum::name_of(op)) + "; they have sum and mean"});
        expect_invalid([&] { ops.plan(op, one_pair(value, "CPU:0"), options); }, {"IndexedSlices"});
      }
    }
  }
  EXPECT_EQ(ops.reduce(ReduceOp::kSum, sparse, "CPU:0").size(), 1U);
}

TEST(Operations, AccumulationFunctionsAreForSumsAndMeans) {
  const PerReplica value = scalars<float>({1, 2});
  ReductionToOneDevice ops({}, [](std::span<const Tensor> components) { return components.front(); });
  expect_invalid([&] { ops.reduce(ReduceOp::kMax, value, value); },
                 {"accumulation_fn", "sum and mean", "not for max"});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), std::vector<float>{1});
}

TEST(Operations, PlansAndWordsNameThem) {
  AllReduceCrossDeviceOps ops("auto");
  const PerReplica value = random_value(DType::kFloat16, {64}, cpus(2), 1);
  EXPECT_THAT(ops.explain(ReduceOp::kMin, one_pair(value, value)), HasSubstr("min of float16, from 2"));
  EXPECT_THAT(ops.explain(ReduceOp::kProduct, one_pair(value, value)),
              HasSubstr("product of float16, multiplied in float32"));
  EXPECT_THAT(
      ops.plan(ReduceOp::kBitOr, one_pair(random_value(DType::kInt8, {9}, cpus(2), 1), "CPU:0")).to_text(),
      HasSubstr("b0 bitor b1"));
}

}  // namespace
}  // namespace onesum
