// docs/semantics.md, sections 4 and 9. Reductions of numbers known from elsewhere: dense, sparse and mixed
// values, variables, several shapes in a batch.
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/classes.h"
#include "conformance/dense_checks.h"
#include "conformance/sparse_checks.h"
#include "same_bits.h"
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

using Parameters = std::tuple<std::string, std::size_t>;

class KnownValues : public ::testing::TestWithParam<Parameters> {
 protected:
  testing::Quiet quiet_;
  std::unique_ptr<CrossDeviceOps> ops_ = testing::make_ops(std::get<0>(GetParam()), "/device:CPU:99");
  const testing::Stage stage_{cpus(std::get<1>(GetParam()))};
};

// 4.2, 4.3, 9.7
TEST_P(KnownValues, SparseOnesAreConcatenated) { testing::check_concatenation(*ops_, stage_); }

// 4.2, 4.5
TEST_P(KnownValues, SparseOnesMayDifferInLengthAndBeEmpty) { testing::check_uneven_rows(*ops_, stage_); }

// 4.3, 4.4
TEST_P(KnownValues, SparseOnesOfOtherTypes) { testing::check_types_of_slices(*ops_, stage_); }

// 4.6, 9.8
TEST_P(KnownValues, MixedOnesAreSummedAsDense) { testing::check_mixed_components(*ops_, stage_); }

// 5.4
TEST_P(KnownValues, MixedBatchesKeepTheirPositions) { testing::check_mixed_batch(*ops_, stage_); }

// 4.7, 9.9
TEST_P(KnownValues, DuplicateRowsMayBeMerged) { testing::check_merged_rows(*ops_, stage_); }

// 5.3, 5.4
TEST_P(KnownValues, DenseNumbers) { testing::check_known_numbers(*ops_, stage_); }

// 5.4, 5.7 to 5.9
TEST_P(KnownValues, EveryWayToAsk) { testing::check_ways(*ops_, stage_); }

// 5.6
TEST_P(KnownValues, Gathers) { testing::check_gather(*ops_, stage_); }

// 5.5
TEST_P(KnownValues, Broadcasts) { testing::check_broadcast_of_types(*ops_, stage_); }

// 2.6
TEST_P(KnownValues, Variables) { testing::check_variables(*ops_, stage_); }

// 5.2
TEST_P(KnownValues, NothingAliases) { testing::check_nothing_aliases(*ops_, stage_); }

INSTANTIATE_TEST_SUITE_P(All, KnownValues,
                         ::testing::Combine(::testing::ValuesIn(testing::all_variants()),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param));
                         });

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

// 4.8
TEST(Sparse, AccumulationFunctionIsPassedBy) {
  const ReductionToOneDevice unused;
  ReductionToOneDevice ops({}, [](std::span<const Tensor>) -> Tensor { throw std::runtime_error("called"); });
  const PerReplica value = two_sparse_replicas();
  expect_slices(ops.reduce(ReduceOp::kSum, value, "CPU:1").slices(), {1, 2, 3, 4, 5, 6}, {1, 1, 3},
                Shape{5, 2});
}

// 2.5
TEST(Mirrored, IsAValueOfItsCopies) {
  ReductionToOneDevice ops;
  const Mirrored two = ops.broadcast(testing::scalar(2.0F, "CPU:0"), testing::scalars<float>({0, 0, 0}));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, two, "CPU:0")), Floats{6});
}

}  // namespace
}  // namespace onesum
