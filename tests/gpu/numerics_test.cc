// What is promised of sums on GPUs, and what plans say where NCCL adds.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/merged_rows.h"
#include "gpu/gpus.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuNumerics : public GpuTest {
 protected:
  static std::string explained(const CrossDeviceOps& ops, const PerReplica& value,
                               const CommunicationOptions& options = {}) {
    return ops.explain(ReduceOp::kSum, one_pair(value, value), options);
  }
  static PerReplica ones(DType dtype, std::size_t devices) {
    return moved(random_value(dtype, {1009}, cpus(devices), 1), gpus(devices));
  }
};

TEST_F(GpuNumerics, NcclsOrderIsItsOwn) {
  ONESUM_NEEDS_GPUS(4);
  const PerReplica value = ones(DType::kFloat32, 4);
  const Plan plan = NcclAllReduce().plan(ReduceOp::kSum, one_pair(value, value));
  plan.verify();
  EXPECT_EQ(plan.order(), "native");
  EXPECT_THAT(explained(NcclAllReduce(), value),
              AllOf(HasSubstr("which only their library knows"), Not(HasSubstr("rounded"))));
}

TEST_F(GpuNumerics, NcclRoundsHalvesOnTheWay) {
  ONESUM_NEEDS_GPUS(4);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const PerReplica value = ones(dtype, 4);
    const Plan plan = NcclAllReduce().plan(ReduceOp::kSum, one_pair(value, value));
    EXPECT_EQ(plan.order(), "native, partial sums rounded to 16 bits");
    EXPECT_THAT(explained(NcclAllReduce(), value),
                AllOf(HasSubstr(std::string(to_string(dtype)) + ", partial sums rounded to it"),
                      Not(HasSubstr("summed in float32"))));
    EXPECT_THAT(explained(HierarchicalCopyAllReduce(), value),
                AllOf(HasSubstr("order of additions: canonical"), HasSubstr("summed in float32")));
  }
}

// `auto` keeps the canonical order, unless it may be fast.
TEST_F(GpuNumerics, AutoUsesOurKernels) {
  ONESUM_NEEDS_GPUS(4);
  AllReduceCrossDeviceOps ops("auto");
  const PerReplica here = random_value(DType::kFloat32, {70001}, cpus(4), 2, Fill::kWild);
  const PerReplica value = moved(here, gpus(4));
  EXPECT_TRUE(same_on(ops.reduce(ReduceOp::kSum, value, value), ops.reduce(ReduceOp::kSum, here, here)));
  EXPECT_EQ(count_all_reduces(), 0U);
  EXPECT_THAT(explained(ops, value), HasSubstr("order of additions: canonical"));
  CommunicationOptions fast;
  fast.numerics = Numerics::kFast;
  ops.reduce(ReduceOp::kSum, value, value, fast);
  if (is_emulated()) {
    EXPECT_GT(count_all_reduces(), 0U);
  }
  EXPECT_THAT(explained(ops, value, fast), HasSubstr("which only their library knows"));
}

// What NCCL has no sum for, and means of integers, which it would let wrap.
TEST_F(GpuNumerics, TheRestOfTheTypesIsOurs) {
  ONESUM_NEEDS_GPUS(3);
  NcclAllReduce ops;
  std::uint64_t seed = 1;
  for (const DType dtype : kSummable) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const PerReplica here = random_value(dtype, {311}, cpus(3), ++seed, Fill::kWild);
      const PerReplica value = moved(here, gpus(3));
      if (ops.plan(op, one_pair(value, value)).order() != "canonical") continue;
      EXPECT_TRUE(same_on(ops.reduce(op, value, value), ops.reduce(op, here, here))) << to_string(dtype);
    }
  }
  const PerReplica value = moved(scalars<std::int8_t>({127, 127, 127}), gpus(3));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, value, value).tensor(2)), std::vector<float>{127});
  EXPECT_EQ(count_all_reduces(), 0U);
}

// What is neither a sum nor a mean is never NCCL's, and plans say so.
TEST_F(GpuNumerics, TheRestOfTheOperationsIsOurs) {
  ONESUM_NEEDS_GPUS(4);
  NcclAllReduce ops;
  const PerReplica here = random_value(DType::kFloat32, {1009}, cpus(4), 1, Fill::kWild);
  const PerReplica value = moved(here, gpus(4));
  CommunicationOptions fast;
  fast.numerics = Numerics::kFast;
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const CommunicationOptions& options : {CommunicationOptions{}, fast}) {
      const Plan plan = ops.plan(op, one_pair(value, value), options);
      plan.verify();
      EXPECT_EQ(plan.order(), "canonical");
      EXPECT_TRUE(same_on(ops.reduce(op, value, value, options), ops.reduce(op, here, here)));
      EXPECT_THAT(ops.explain(op, one_pair(value, value), options),
                  HasSubstr("NCCL is left to sum and mean: kernels of onesum form the "));
    }
  }
  EXPECT_EQ(count_all_reduces(), 0U);
  EXPECT_THAT(explained(ops, value), Not(HasSubstr("is left to")));
  // On CPUs nothing would have been NCCL's.
  EXPECT_THAT(ops.explain(ReduceOp::kMin, one_pair(here, here)), Not(HasSubstr("is left to")));
}

// NaN and infinities come through NCCL as through anything else.
TEST_F(GpuNumerics, SpecialNumbers) {
  ONESUM_NEEDS_GPUS(2);
  const float infinity = std::numeric_limits<float>::infinity();
  const PerReplica value =
      moved(vectors<float>({{infinity, infinity, 1, std::nanf("")}, {1, -infinity, 2, 1}}), gpus(2));
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const std::vector<float> found = contents<float>(NcclAllReduce().reduce(op, value, value).tensor(1));
    EXPECT_EQ(found[0], infinity);
    EXPECT_TRUE(std::isnan(found[1]));
    EXPECT_EQ(found[2], op == ReduceOp::kSum ? 3.0F : 1.5F);
    EXPECT_TRUE(std::isnan(found[3]));
  }
}

TEST_F(GpuNumerics, MergedRowsHaveTheBitsOfPlainCode) {
  ONESUM_NEEDS_GPUS(3);
  std::uint64_t seed = 1;
  for (const DType dtype : kSummable) {
    for (const std::vector<std::string>& devices :
         {gpus(1), gpus(3), std::vector<std::string>{"GPU:0", "CPU:0", "GPU:1", "GPU:2"}}) {
      const PerReplica here = random_slices({dtype, devices.size(), 12, 5, {3}}, ++seed, Fill::kWild);
      const PerReplica there = moved(here, devices);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
        const MergedRows expected = merged_rows(op, here);
        NcclAllReduce ops;
        expect_merged(ops.reduce(op, there, there, merging()), op, here, expected, "returned");
        std::vector<PerReplica> results{blank_results(op, here, expected, there.devices())};
        ops.batch_reduce_into(op, std::vector<PerReplica>{there}, results, merging());
        expect_merged(results[0], op, here, expected, "into");
      }
    }
  }
}

}  // namespace
}  // namespace onesum::testing
