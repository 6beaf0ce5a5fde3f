// Memory of CUDA: device, pinned and registered.
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <cuda_runtime_api.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

void* address_of(const Allocation& allocation) {
  return reinterpret_cast<void*>(allocation.begin);  // NOLINT(performance-no-int-to-ptr)
}

// A context that has ended runs nothing any more, in the memory of other devices neither.
bool has_one_ended() {
  for (int device = 0; device < settings().devices; ++device) {
    if (error_of(device) != cudaSuccess) return true;
  }
  return false;
}

void wait_for_all_devices() {
  for (int device = 0; device < settings().devices; ++device) {
    World::Progress progress;
    {
      const std::lock_guard lock(world().mutex);
      progress = world().progress_of(device);
    }
    progress.wait();
    const std::lock_guard lock(world().mutex);
    world().learn(progress.clock);
  }
}

cudaError_t give_back(void* address, MemoryKind kind, const char* call, cudaError_t if_unknown) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  if (address == nullptr && kind != MemoryKind::kRegistered) return cudaSuccess;
  if (settings().free_synchronises) wait_for_all_devices();
  const std::lock_guard lock(world().mutex);
  const std::shared_ptr<Allocation> allocation = world().memory.find(address);
  const std::string what = std::string(call) + " of " + hex(address);
  if (allocation == nullptr) {
    return violate(if_unknown, what + ", which " + world().memory.obituary(address));
  }
  if (allocation->kind != kind || address != address_of(*allocation)) {
    return violate(if_unknown, what + ", which is not what was given out: " + allocation->text());
  }
  const std::optional<Access> unfinished = allocation->history.unfinished(world().host_clock());
  if (unfinished && !has_one_ended()) {
    violate(cudaSuccess, what + " while, as far as the host knows, " + unfinished->text());
  }
  world().memory.release(allocation);
  return error_of(kind == MemoryKind::kDevice ? allocation->device : current_device());
}

cudaMemoryType type_of(const Allocation& allocation) {
  return allocation.kind == MemoryKind::kDevice ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const int device = current_device();
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return finish(error);
  count(Counted::kMalloc);
  if (const auto failure = take_failure(Failure::kMalloc)) return finish(static_cast<cudaError_t>(*failure));
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(world().mutex);
  if (bytes > settings().memory_bytes - world().memory.device_bytes(device)) {
    return finish(cudaErrorMemoryAllocation);
  }
  const auto allocation = world().memory.allocate(MemoryKind::kDevice, device, bytes);
  if (allocation == nullptr) return finish(cudaErrorMemoryAllocation);
  *address = address_of(*allocation);
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  return finish(give_back(address, MemoryKind::kDevice, "cudaFree", cudaErrorInvalidValue));
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned int flags) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  constexpr unsigned int kFlags = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~kFlags) != 0) return finish(cudaErrorInvalidValue);
  count(Counted::kHostAlloc);
  if (const auto failure = take_failure(Failure::kHostAlloc))
    return finish(static_cast<cudaError_t>(*failure));
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(world().mutex);
  const auto allocation = world().memory.allocate(MemoryKind::kPinned, current_device(), bytes);
  if (allocation == nullptr) return finish(cudaErrorMemoryAllocation);
  *address = address_of(*allocation);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  return finish(give_back(address, MemoryKind::kPinned, "cudaFreeHost", cudaErrorInvalidValue));
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned int /*flags*/) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  if (address == nullptr || bytes == 0) return finish(cudaErrorInvalidValue);
  const std::lock_guard lock(world().mutex);
  if (world().memory.find_overlap(Range::of(address, bytes)) != nullptr) {
    return finish(cudaErrorHostMemoryAlreadyRegistered);
  }
  world().memory.enlist(current_device(), address, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  return finish(
      give_back(address, MemoryKind::kRegistered, "cudaHostUnregister", cudaErrorHostMemoryNotRegistered));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  const std::shared_ptr<Allocation> allocation = world().memory.find(address);
  *attributes = {};
  void* const pointer = const_cast<void*>(address);
  if (allocation == nullptr) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = pointer;
    return cudaSuccess;
  }
  attributes->type = type_of(*allocation);
  attributes->device = allocation->device;
  attributes->devicePointer = pointer;
  attributes->hostPointer = allocation->kind == MemoryKind::kDevice ? nullptr : pointer;
  return cudaSuccess;
}
}
