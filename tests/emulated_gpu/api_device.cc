// Devices of CUDA: how many, what they can, which one is current, and who reaches whose memory.
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "emulated_gpu/settings.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

constexpr int kVersion = CUDART_VERSION;
constexpr int kMajor = 9;
constexpr int kMultiprocessors = 132;
constexpr int kFirstBus = 0x10;

cudaError_t check_device(int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  return device >= 0 && device < settings().devices ? cudaSuccess : cudaErrorInvalidDevice;
}

bool are_peers(int first, int second) {
  if (first == second) return false;
  if (settings().all_are_peers) return true;
  for (const auto& [one, other] : settings().peers) {
    if ((one == first && other == second) || (one == second && other == first)) return true;
  }
  return false;
}

// Among all, seen or not.
int number_of(int device) { return settings().numbers[static_cast<std::size_t>(device)]; }

int bus_of(int device) { return kFirstBus + number_of(device); }

int attribute_of(cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrComputeCapabilityMajor:
      return kMajor;
    case cudaDevAttrPciBusId:
      return bus_of(device);
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      return 1;
    default:
      return 0;
  }
}

void describe(cudaDeviceProp& properties, int device) {
  properties = {};
  std::snprintf(properties.name, sizeof(properties.name), "Emulated GPU %d", number_of(device));
  std::memset(properties.uuid.bytes, 0xe0 + number_of(device) % 16, sizeof(properties.uuid.bytes));
  properties.totalGlobalMem = settings().memory_bytes;
  properties.sharedMemPerBlock = 48 << 10;
  properties.regsPerBlock = 65536;
  properties.warpSize = 32;
  properties.memPitch = 0x7fffffff;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = 0x7fffffff;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
  properties.major = kMajor;
  properties.multiProcessorCount = kMultiprocessors;
  properties.canMapHostMemory = 1;
  properties.concurrentKernels = 1;
  properties.pciBusID = bus_of(device);
  properties.asyncEngineCount = 3;
  properties.unifiedAddressing = 1;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.maxBlocksPerMultiProcessor = 32;
  properties.streamPrioritiesSupported = 1;
  properties.hostRegisterSupported = 1;
  properties.canUseHostPointerForRegisteredMem = 1;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (!settings().has_driver) return finish(cudaErrorInsufficientDriver);
  *count = settings().devices;
  return finish(usable());
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return finish(error);
  current_device() = device;
  return finish(error_of(device));
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return finish(error);
  *value = attribute_of(attribute, device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return finish(error);
  describe(*properties, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return finish(error);
  const int needed = std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", bus_of(device));
  return finish(needed < length ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().has_driver ? kVersion : 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  *total = settings().memory_bytes;
  *free = *total - world().memory.device_bytes(current_device());
  return finish(error_of(current_device()));
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return finish(error);
  if (const cudaError_t error = check_device(peer); error != cudaSuccess) return finish(error);
  *can = are_peers(device, peer) ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (const cudaError_t error = check_device(peer); error != cudaSuccess) return finish(error);
  if (flags != 0) return finish(cudaErrorInvalidValue);
  const int device = current_device();
  if (peer == device) return finish(cudaErrorInvalidDevice);
  if (!are_peers(device, peer)) return finish(cudaErrorPeerAccessUnsupported);
  const std::lock_guard lock(world().mutex);
  auto access = world().devices[static_cast<std::size_t>(device)]->has_access[static_cast<std::size_t>(peer)];
  if (access) return finish(cudaErrorPeerAccessAlreadyEnabled);
  access = true;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const int device = current_device();
  World::Progress progress;
  {
    const std::lock_guard lock(world().mutex);
    progress = world().progress_of(device);
  }
  progress.wait();
  const std::lock_guard lock(world().mutex);
  world().learn(progress.clock);
  return finish(error_of(device));
}
}
