#include "gpu/gpus.h"

#include <cstdio>
#include <utility>

#include "api/gpu_report.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum::testing {

std::size_t gpus_here() {
  emulator();  // says how many there are, if nobody has
  return api::count_gpus();
}

std::vector<std::size_t> possible(std::initializer_list<std::size_t> counts) {
  std::vector<std::size_t> those_here;
  for (const std::size_t count : counts) {
    if (count <= gpus_here()) {
      those_here.push_back(count);
    } else {
      std::printf("left out: %zu GPUs, as %zu were found\n", count, gpus_here());
    }
  }
  return those_here;
}

std::size_t count_all_reduces() { return is_emulated() ? emulator().operations("all_reduce") : 0; }

std::vector<std::string> gpus(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("GPU:" + std::to_string(i));
  return names;
}

std::string full_gpu_name(std::size_t index) {
  return "/job:localhost/replica:0/task:0/device:GPU:" + std::to_string(index);
}

PerReplica moved(const DistributedValues& values, const std::vector<std::string>& devices) {
  std::vector<Value> components;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const auto* tensor = std::get_if<Tensor>(&values.value(i))) {
      components.emplace_back(tensor->copied_to(devices[i]));
      continue;
    }
    const IndexedSlices& slices = values.slices(i);
    components.emplace_back(IndexedSlices{slices.values.copied_to(devices[i]),
                                          slices.indices.copied_to(devices[i]), slices.dense_shape});
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

GpuBalance::GpuBalance() {
  for (const std::string& gpu : gpus(gpus_here())) {
    Tensor::empty(DType::kFloat32, {1}, gpu);  // streams are there
  }
  emulator().reset();
  emulator().live(&before_);
}

std::string GpuBalance::find_faults() const {
  std::string faults;
  if (emulator().violations() != 0) faults = std::string(emulator().last_violation()) + "; ";
  EmulatedGpuLive after;
  emulator().live(&after);
  const auto compare = [&](const char* what, std::size_t EmulatedGpuLive::* count) {
    if (after.*count == before_.*count) return;
    faults += std::string(what) + " were " + std::to_string(before_.*count) + ", are " +
              std::to_string(after.*count) + "; ";
  };
  compare("device allocations", &EmulatedGpuLive::device_allocations);
  compare("pinned allocations", &EmulatedGpuLive::pinned_allocations);
  compare("registered ranges", &EmulatedGpuLive::registered_ranges);
  compare("events", &EmulatedGpuLive::events);
  compare("streams", &EmulatedGpuLive::streams);
  compare("communicators", &EmulatedGpuLive::communicators);
  return faults;
}

}  // namespace onesum::testing
