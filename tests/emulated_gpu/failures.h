// Failures on purpose: emulated_gpu_fail and EMULATED_GPU_FAIL.
#pragma once

#include <optional>

namespace onesum::emulated {

enum class Failure {
  kMalloc,
  kHostAlloc,
  kCopy,
  kLaunch,
  kStreamCreate,
  kEventCreate,
  kEventRecord,
  kCollectiveHang,
  kCollectiveAsyncError,
  kCommInit,
};

// Counts a call or operation of the kind; the code with which it is to fail, if it is.
std::optional<int> take_failure(Failure kind);

void forget_failures();

// Whether such an error of CUDA ends a context: every later call returns it.
bool is_sticky(int code);

}  // namespace onesum::emulated
