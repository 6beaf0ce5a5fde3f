// Values on CPUs and GPUs together, and results on devices of another kind: the bits are those of the host.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/classes.h"
#include "gpu/gpus.h"
#include "plan/plan.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

using Devices = std::vector<std::string>;

std::unique_ptr<CrossDeviceOps> ops_of(const std::string& algorithm) {
  if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
  return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
}

// Types whose sums and means take different kernels.
constexpr DType kSomeTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt64};

class MixedDevices : public GpuTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(MixedDevices, HaveTheBitsOfTheHost) {
  ONESUM_NEEDS_GPUS(4);
  const std::unique_ptr<CrossDeviceOps> ops = ops_of(GetParam());
  std::uint64_t seed = 1;
  for (const Devices& devices : {Devices{"CPU:0", "GPU:0"}, Devices{"GPU:1", "CPU:1", "GPU:0"},
                                 Devices{"GPU:3", "GPU:2", "CPU:2", "CPU:0"}}) {
    for (const DType dtype : kSomeTypes) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
        for (const std::int64_t elements : {0, 1, 20011}) {
          const PerReplica here = random_value(dtype, {elements}, cpus(devices.size()), ++seed, Fill::kWild);
          const PerReplica there = moved(here, devices);
          const Mirrored found = ops->reduce(op, there, there);
          EXPECT_EQ(devices_of(found), devices_of(there));
          ASSERT_TRUE(same_on(found, ops->reduce(op, here, here))) << to_string(dtype) << ", " << elements;
          ASSERT_TRUE(same_on(there, here)) << "inputs were changed";
        }
      }
    }
  }
  EXPECT_EQ(count_all_reduces(), 0U) << "NCCL knows no CPUs";
}

INSTANTIATE_TEST_SUITE_P(All, MixedDevices,
                         ::testing::Values("one_device", "nccl", "hierarchical_copy", "psgpu", "pscpu",
                                           "direct", "rechd", "xring", "auto"),
                         [](const auto& its) { return std::string(its.param); });

// From any devices to any others, by way of any third.
class OtherKinds : public GpuTest {};

TEST_F(OtherKinds, OfDestinations) {
  ONESUM_NEEDS_GPUS(8);
  const PerReplica here = random_value(DType::kFloat16, {1009}, cpus(3), 1, Fill::kWild);
  using Name = std::optional<std::string>;
  for (const Name& by : {Name(), Name("CPU:0"), Name("GPU:5"), Name("GPU:0")}) {
    ReductionToOneDevice ops(by);
    for (const Devices& from : {cpus(3), gpus(3), Devices{"GPU:0", "CPU:0", "GPU:4"}}) {
      for (const Devices& to :
           {Devices{"CPU:0"}, Devices{"GPU:0"}, Devices{"GPU:7"}, Devices{"CPU:1", "GPU:0"}, gpus(4)}) {
        const PerReplica value = moved(here, from);
        const PerReplica model = blank_results(ReduceOp::kMean, value, to);
        const Mirrored found = ops.reduce(ReduceOp::kMean, value, model);
        EXPECT_EQ(devices_of(found), devices_of(model));
        EXPECT_TRUE(all_hold(found, simulated(ops, ReduceOp::kMean, here, "CPU:0")));
      }
    }
  }
}

TEST_F(OtherKinds, OfResultsInPlace) {
  ONESUM_NEEDS_GPUS(2);
  const PerReplica here = random_value(DType::kFloat32, {1009}, cpus(3), 2);
  ReductionToOneDevice ops("CPU:0");
  const Mirrored expected = ops.reduce(ReduceOp::kSum, here, here);
  const std::vector<PerReplica> values{moved(here, {"GPU:0", "CPU:0", "GPU:1"})};
  std::vector<PerReplica> results{values[0]};
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_TRUE(same_on(results[0], expected));
}

// The kinds of devices on which a plan adds several values up.
std::set<std::string> kinds_that_add(const CrossDeviceOps& ops, const PerReplica& value) {
  const Plan plan = ops.plan(ReduceOp::kSum, one_pair(value, value));
  std::set<std::string> kinds;
  for (const plan::Lane& lane : plan.value().lanes) {
    for (const plan::Step& step : lane.steps) {
      if (step.op != plan::Op::kReduce || step.num_sources < 2) continue;
      kinds.insert(plan.devices()[static_cast<std::size_t>(step.device)].type().value_or(""));
    }
  }
  return kinds;
}

TEST_F(OtherKinds, OfPlacesWhereSumsAreFormed) {
  ONESUM_NEEDS_GPUS(4);
  const PerReplica value = moved(random_value(DType::kFloat32, {1000}, cpus(4), 3), gpus(4));
  EXPECT_EQ(kinds_that_add(AllReduceCrossDeviceOps("pscpu"), value), std::set<std::string>{"CPU"});
  EXPECT_EQ(kinds_that_add(AllReduceCrossDeviceOps("psgpu"), value), std::set<std::string>{"GPU"});
  EXPECT_EQ(kinds_that_add(ReductionToOneDevice("CPU:0"), value), std::set<std::string>{"CPU"});
  EXPECT_EQ(kinds_that_add(ReductionToOneDevice("GPU:3"), value), std::set<std::string>{"GPU"});
  EXPECT_EQ(kinds_that_add(NcclAllReduce(), value), std::set<std::string>{});
}

// A caller's own function gets GPU memory as it is, and may return memory on any device.
class FunctionsOnGpus : public GpuTest {};

TEST_F(FunctionsOnGpus, GetTheCallersTensors) {
  ONESUM_NEEDS_GPUS(7);
  const PerReplica value = moved(vectors<float>({{1, 2}, {3, 4}, {5, 6}}), {"GPU:1", "CPU:0", "GPU:0"});
  for (const char* returned : {"GPU:0", "GPU:6", "CPU:0"}) {
    std::vector<const void*> seen;
    ReductionToOneDevice ops({}, [&](std::span<const Tensor> components) {
      for (const Tensor& component : components) seen.push_back(component.memory());
      return add_all(components).copied_to(returned);
    });
    const Mirrored mean = ops.reduce(ReduceOp::kMean, value, value);
    for (std::size_t d = 0; d < 3; ++d) {
      EXPECT_EQ(contents<float>(mean.tensor(d)), (std::vector<float>{3, 4}));
      EXPECT_EQ(seen.at(d), value.tensor(d).memory());
    }
  }
}

TEST_F(FunctionsOnGpus, MayReturnAnInput) {
  ONESUM_NEEDS_GPUS(2);
  ReductionToOneDevice ops({}, [](std::span<const Tensor> components) { return components.back(); });
  const std::vector<PerReplica> values{moved(vectors<float>({{1, 2}, {30, 40}}), gpus(2))};
  const Mirrored mean = ops.reduce(ReduceOp::kMean, values[0], values[0]);
  for (std::size_t d = 0; d < 2; ++d)
    EXPECT_EQ(contents<float>(mean.tensor(d)), (std::vector<float>{15, 20}));
  std::vector<PerReplica> results = values;
  ops.batch_reduce_into(ReduceOp::kMean, values, results);
  for (std::size_t d = 0; d < 2; ++d)
    EXPECT_EQ(contents<float>(values[0].tensor(d)), (std::vector<float>{15, 20}));
}

}  // namespace
}  // namespace onesum::testing
