// Launching the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime_api.h>

#include "engine/cuda/launch_arguments.h"
#include "engine/device.h"

namespace onesum::engine::cuda {

// The symbol of a form's kernel, for the CUDA runtime. Throws invalid_argument for a form that has no
// meaning, naming what is wrong with it.
const void* find_kernel(const ReduceForm& form);

// Where a launch goes. The pieces' memory is read and written until the stream has passed it.
struct LaunchTarget {
  cudaStream_t stream = nullptr;
  unsigned multiprocessors = 108;  // of the GPU: more blocks than these hold at once gain nothing
};

// Enqueues the form's kernel on the current device, in as many launches as the pieces need. `is_wide`: which
// sources are of the accumulator's type already; empty for none. Throws what LaunchWriter throws; returns the
// error of the first launch that failed.
cudaError_t launch_reduce(const void* kernel, const ReduceForm& form, std::span<const std::uint8_t> is_wide,
                          std::span<const LaunchPiece> pieces, const LaunchTarget& target);

}  // namespace onesum::engine::cuda
