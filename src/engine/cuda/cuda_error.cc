#include "engine/cuda/cuda_error.h"

#include <onesum/error.h>

namespace onesum::engine::cuda {

void throw_cuda(cudaError_t error, int device, const std::string& doing) {
  cudaGetLastError();  // or the next call that asks for it is told of this one
  const ErrorCode code =
      error == cudaErrorMemoryAllocation ? ErrorCode::kResourceExhausted : ErrorCode::kInternal;
  throw Error(code, "GPU:" + std::to_string(device) + ": " + doing + ": " + cudaGetErrorString(error) + " (" +
                        cudaGetErrorName(error) + ")");
}

OnDevice::OnDevice(int device) : device_(device) {
  require(cudaGetDevice(&before_), device, "asking for the current device");
  if (before_ != device_) require(cudaSetDevice(device_), device, "making it the current device");
}

OnDevice::~OnDevice() {
  if (before_ != device_) cudaSetDevice(before_);
}

}  // namespace onesum::engine::cuda
