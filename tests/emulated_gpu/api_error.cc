// Errors of CUDA: names, texts, and each thread's last one.
#include <utility>

#include <cuda_runtime_api.h>

#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

struct Meaning {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ONESUM_ERROR(name, text) \
  Meaning { name, #name, text }

constexpr Meaning kMeanings[] = {
    ONESUM_ERROR(cudaSuccess, "no error"),
    ONESUM_ERROR(cudaErrorInvalidValue, "invalid argument"),
    ONESUM_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ONESUM_ERROR(cudaErrorInitializationError, "initialization error"),
    ONESUM_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ONESUM_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ONESUM_ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ONESUM_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ONESUM_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ONESUM_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ONESUM_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ONESUM_ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ONESUM_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ONESUM_ERROR(cudaErrorNotReady, "device not ready"),
    ONESUM_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ONESUM_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ONESUM_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ONESUM_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                 "part or all of the requested memory range is already mapped"),
    ONESUM_ERROR(cudaErrorHostMemoryNotRegistered,
                 "pointer does not correspond to a registered memory region"),
    ONESUM_ERROR(cudaErrorAssert, "device-side assert triggered"),
    ONESUM_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ONESUM_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ONESUM_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    ONESUM_ERROR(cudaErrorNotSupported, "operation not supported"),
    ONESUM_ERROR(cudaErrorUnknown, "unknown error"),
};

#undef ONESUM_ERROR

const Meaning* find(cudaError_t error) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.error == error) return &meaning;
  }
  return nullptr;
}

cudaError_t& last() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) last() = error;
  return error;
}

}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const Meaning* found = find(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Meaning* found = find(error);
  return found == nullptr ? "unrecognized error code" : found->text;
}

cudaError_t cudaGetLastError() { return std::exchange(last(), cudaSuccess); }

cudaError_t cudaPeekAtLastError() { return last(); }
}
