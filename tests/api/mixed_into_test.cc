// Rules 4.6 and 5.7: values that mix dense and sparse components, into the caller's memory.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

struct Mixed {
  std::array<float, 4> dense{1, 1, 1, 1};
  std::array<float, 4> rows{2, 3, 4, 5};
  std::array<std::int32_t, 2> indices{1, 1};
  std::array<float, 4> other{};

  Tensor tensor(std::array<float, 4>& memory, const char* device) {
    return Tensor::borrow(memory.data(), DType::kFloat32, {2, 2}, device);
  }
  PerReplica value() {
    const IndexedSlices slices{tensor(rows, "CPU:1"),
                               Tensor::borrow(indices.data(), DType::kInt32, {2}, "CPU:1"), Shape{2, 2}};
    return PerReplica(std::vector<Value>{tensor(dense, "CPU:0"), slices});
  }
};

TEST(MixedInto, ReplacesItsDenseReplica) {
  Mixed mixed;
  ReductionToOneDevice ops;
  const std::vector<PerReplica> values{mixed.value()};
  std::vector<PerReplica> results{PerReplica(
      std::vector<Tensor>{mixed.tensor(mixed.dense, "CPU:0"), mixed.tensor(mixed.other, "CPU:1")})};
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(mixed.dense, (std::array<float, 4>{1, 1, 7, 9}));
  EXPECT_EQ(mixed.other, mixed.dense);
  EXPECT_EQ(mixed.rows, (std::array<float, 4>{2, 3, 4, 5}));
}

TEST(MixedInto, RefusesResultsOnSlices) {
  Mixed mixed;
  ReductionToOneDevice ops;
  const std::vector<PerReplica> values{mixed.value()};
  std::vector<PerReplica> results{PerReplica(mixed.tensor(mixed.rows, "CPU:1"))};
  expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, results); },
                 {"pair 0: result 0", "pair 0: replica 1", "share memory"});
  expect_invalid([&] { ops.prepare(ReduceOp::kSum, values, results); }, {"share memory"});
  EXPECT_EQ(mixed.rows, (std::array<float, 4>{2, 3, 4, 5}));
}

TEST(MixedInto, PrepareRefusesWhatRunWould) {
  Mixed mixed;
  ReductionToOneDevice ops;
  const std::vector<PerReplica> values{mixed.value()};
  std::vector<PerReplica> results{
      PerReplica(Tensor::borrow(mixed.other.data(), DType::kFloat32, {4}, "CPU:0"))};
  expect_invalid([&] { ops.prepare(ReduceOp::kSum, values, results); }, {"pair 0", "[4]", "[2,2]"});
}

}  // namespace
}  // namespace onesum
