#include "engine/cuda/cuda_engine.h"

#include <onesum/error.h>

#include "base/amounts.h"
#include "base/log.h"
#include "engine/cuda/cuda_error.h"
#include "engine/cuda/launch.h"

namespace onesum::engine::cuda {
namespace {

void* get_device_memory(int device, std::size_t bytes) {
  const OnDevice here(device);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  require(error, device, "allocating memory");
  return memory;
}

void* get_pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  require(error, 0, "allocating pinned memory");
  return memory;
}

std::string describe(int device) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), device, "asking for its properties");
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
         std::to_string(properties.minor) + ", " + format_bytes(properties.totalGlobalMem);
}

}  // namespace

Staging::Staging(std::size_t pool_bytes)
    : pool_(pool_bytes, get_pinned_memory, [](void* memory) { cudaFreeHost(memory); }) {}

void* Staging::allocate(std::size_t bytes) {
  void* const memory = pool_.allocate(bytes);
  if (memory != nullptr) return memory;
  throw Error(ErrorCode::kResourceExhausted, "no " + format_bytes(bytes) +
                                                 " of pinned memory to be had; onesum uses " +
                                                 format_bytes(pool_.bytes_in_use()));
}

CudaEngine::CudaEngine(int index, std::size_t pool_bytes, Staging& staging)
    : index_(index),
      staging_(staging),
      pool_(
          pool_bytes, [index](std::size_t bytes) { return get_device_memory(index, bytes); },
          [](void* memory) { cudaFree(memory); }),
      description_(describe(index)) {
  for (std::unique_ptr<CudaQueue>& queue : queues_) queue = std::make_unique<CudaQueue>(index);
}

void* CudaEngine::allocate(std::size_t bytes) {
  void* const memory = pool_.allocate(bytes);
  if (memory != nullptr) return memory;
  throw Error(ErrorCode::kResourceExhausted, "GPU:" + std::to_string(index_) + ": no " + format_bytes(bytes) +
                                                 " of memory to be had; onesum uses " +
                                                 format_bytes(pool_.bytes_in_use()) + " of it");
}

bool CudaEngine::reaches(const QueuedEngine& other) const noexcept {
  if (&other == this) return true;
  const auto number = static_cast<std::size_t>(other.index());
  const std::scoped_lock lock(peers_mutex_);
  if (peers_.size() <= number) peers_.resize(number + 1);
  if (!peers_[number]) peers_[number] = enable_peer(other.index());
  return *peers_[number];
}

bool CudaEngine::enable_peer(int other) const noexcept {
  try {
    const OnDevice here(index_);
    int can = 0;
    require(cudaDeviceCanAccessPeer(&can, index_, other), index_, "asking for its peers");
    if (can == 0) return false;
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
      return true;
    }
    require(error, index_, "enabling access to a peer's memory");
    return true;
  } catch (const Error& error) {
    log(LogLevel::kWarning, std::string(error.what()) + "; memory of GPU:" + std::to_string(other) +
                                " reaches it through the host");
    return false;
  }
}

void CudaEngine::check_form(const ReduceForm& form) const { find_kernel(form); }

void CudaEngine::check() {
  const cudaError_t answer = cudaStreamQuery(queues_.front()->stream());
  if (answer != cudaErrorNotReady) require(answer, index_, "doing what it was given");
}

void CudaEngine::record(void* stream, Mark& mark) {
  static_cast<CudaMark&>(mark).record_on(static_cast<cudaStream_t>(stream));
}

void CudaEngine::let_wait(void* stream, Mark& mark) {
  const OnDevice here(index_);
  require(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<CudaMark&>(mark).event(), 0),
          index_, "letting the caller's stream wait");
}

}  // namespace onesum::engine::cuda
