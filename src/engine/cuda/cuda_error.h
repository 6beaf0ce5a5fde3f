// Errors of the CUDA runtime as ours, and the device that calls of this thread go to.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

namespace onesum::engine::cuda {

// Throws resource_exhausted for a lack of memory and internal for everything else, naming the device and what
// was being done: "GPU:1: recording an event: unspecified launch failure (cudaErrorLaunchFailure)".
[[noreturn]] void throw_cuda(cudaError_t error, int device, const std::string& doing);

inline void require(cudaError_t error, int device, const char* doing) {
  if (error != cudaSuccess) throw_cuda(error, device, doing);
}

// While it lives, calls of this thread go to the device; then to the caller's again.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_;
  int before_ = -1;
};

}  // namespace onesum::engine::cuda
