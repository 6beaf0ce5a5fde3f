#include "gpu/gpus.h"

#include <utility>

#include "support/bits.h"
#include "support/tensors.h"

namespace onesum::testing {

std::vector<std::string> gpus(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("GPU:" + std::to_string(i));
  return names;
}

std::string full_gpu_name(std::size_t index) {
  return "/job:localhost/replica:0/task:0/device:GPU:" + std::to_string(index);
}

PerReplica moved(const DistributedValues& values, const std::vector<std::string>& devices) {
  std::vector<Tensor> components;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    components.push_back(std::get<Tensor>(values.values()[i]).copied_to(devices[i]));
  }
  return PerReplica(std::move(components));
}

::testing::AssertionResult same_on(const DistributedValues& found, const DistributedValues& expected) {
  if (found.values().size() != expected.values().size()) {
    return ::testing::AssertionFailure()
           << found.values().size() << " components in place of " << expected.values().size();
  }
  for (std::size_t i = 0; i < found.values().size(); ++i) {
    const Tensor left = std::get<Tensor>(found.values()[i]).copied_to("CPU:0");
    const Tensor right = std::get<Tensor>(expected.values()[i]).copied_to("CPU:0");
    if (left.dtype() != right.dtype() || left.shape() != right.shape()) {
      return ::testing::AssertionFailure() << "component " << i << " has another type or shape";
    }
    const ::testing::AssertionResult same = same_bits(left, bytes_of(right));
    if (!same) return ::testing::AssertionFailure() << "component " << i << ": " << same.message();
  }
  return ::testing::AssertionSuccess();
}

void GpuTest::SetUp() {
  for (const std::string& gpu : gpus(8)) Tensor::empty(DType::kFloat32, {1}, gpu);  // streams are there
  emulator().reset();
  emulator().live(&before_);
}

void GpuTest::TearDown() {
  EXPECT_EQ(emulator().violations(), 0U) << emulator().last_violation();
  EmulatedGpuLive after;
  emulator().live(&after);
  EXPECT_EQ(after.device_allocations, before_.device_allocations);
  EXPECT_EQ(after.pinned_allocations, before_.pinned_allocations);
  EXPECT_EQ(after.events, before_.events);
  EXPECT_EQ(after.streams, before_.streams);
  EXPECT_EQ(after.communicators, before_.communicators);
}

}  // namespace onesum::testing
