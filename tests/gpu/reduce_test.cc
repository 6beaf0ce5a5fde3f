// Reductions of values on GPUs: the same bits as on the host, wherever the order of additions is ours.
#include <memory>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "support/bits.h"
#include "support/operations.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

struct Case {
  const char* algorithm;
  std::size_t devices;
};

class OnGpus : public GpuTest, public ::testing::WithParamInterface<Case> {};

std::unique_ptr<CrossDeviceOps> ops_of(const std::string& algorithm) {
  if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
  return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
}

TEST_P(OnGpus, HasTheBitsOfTheHost) {
  const auto& [algorithm, devices] = GetParam();
  ONESUM_NEEDS_GPUS(devices);
  const std::unique_ptr<CrossDeviceOps> ops = ops_of(algorithm);
  std::uint64_t seed = 1;
  for (const DType dtype : kSummable) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      for (const std::int64_t elements : {0, 1, 7, 20011}) {
        const PerReplica here = random_value(dtype, {elements}, cpus(devices), ++seed, Fill::kWild);
        const PerReplica there = moved(here, gpus(devices));
        const Mirrored found = ops->reduce(op, there, there);
        EXPECT_EQ(device_of(found.values().back()).to_string(), full_gpu_name(devices - 1));
        ASSERT_TRUE(same_on(found, ops->reduce(op, here, here)))
            << to_string(dtype) << ", " << elements << " elements";
        ASSERT_TRUE(same_on(there, here)) << "inputs were changed";
      }
    }
  }
}

TEST_P(OnGpus, EveryOperationHasTheBitsOfTheHost) {
  const auto& [algorithm, devices] = GetParam();
  ONESUM_NEEDS_GPUS(devices);
  const std::unique_ptr<CrossDeviceOps> ops = ops_of(algorithm);
  std::uint64_t seed = 1;
  for (const auto& [op, dtype] : other_operations()) {
    for (const std::int64_t elements : {1, 2003}) {
      const PerReplica here = random_value(dtype, {elements}, cpus(devices), ++seed, Fill::kWild);
      const PerReplica there = moved(here, gpus(devices));
      ASSERT_TRUE(same_on(ops->reduce(op, there, there), ops->reduce(op, here, here)))
          << static_cast<int>(op) << " of " << to_string(dtype) << ", " << elements << " elements";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnGpus,
                         ::testing::Values(Case{"one_device", 1}, Case{"one_device", 2},
                                           Case{"one_device", 3}, Case{"one_device", 4},
                                           Case{"one_device", 8}, Case{"hierarchical_copy", 2},
                                           Case{"hierarchical_copy", 3}, Case{"hierarchical_copy", 8},
                                           Case{"psgpu", 4}, Case{"pscpu", 4}, Case{"direct", 4},
                                           Case{"rechd", 8}, Case{"auto", 4}),
                         [](const auto& its) {
                           return std::string(its.param.algorithm) + "_" + std::to_string(its.param.devices);
                         });

}  // namespace
}  // namespace onesum::testing
