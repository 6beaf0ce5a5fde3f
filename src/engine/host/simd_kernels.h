// The kernels for the best instruction set of this machine.
#pragma once

#include <string>

#include "engine/device.h"

namespace onesum::engine::host {

// The kernel for a form whose merges, destinations and divisor make sense; null if there is none for its
// types.
Kernel find_simd_kernel(const ReduceForm& form) noexcept;

// "AVX3", "NEON", …
std::string simd_target();

}  // namespace onesum::engine::host
