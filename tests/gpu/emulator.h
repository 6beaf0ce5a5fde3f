// The functions of the emulated GPU, in the library that LD_LIBRARY_PATH leads to; on real GPUs, where the
// same tests run too (tools/test_gpu), what stands in for them.
#pragma once

#include <string>

#include "emulated_gpu/emulated_gpu.h"

namespace onesum::testing {

struct Emulator {
  std::string file;  // empty: the GPUs are real
  // Of real GPUs: nothing lives there, and no rule was ever broken. Whoever asks them to count or to fail
  // ends the program.
  decltype(&emulated_gpu_live) live = nullptr;
  decltype(&emulated_gpu_violations) violations = nullptr;
  decltype(&emulated_gpu_last_violation) last_violation = nullptr;
  decltype(&emulated_gpu_operations) operations = nullptr;
  decltype(&emulated_gpu_fail) fail = nullptr;
  decltype(&emulated_gpu_reset) reset = nullptr;
  int (*get_device)(int*) = nullptr;  // cudaGetDevice
  int (*set_device)(int) = nullptr;   // cudaSetDevice
};

// Eight GPUs; violations are counted. With EMULATED_GPU_HIDDEN set it is treated as real GPUs are, and has as
// many devices as its environment says. Calls nothing of CUDA, so that a process may fork afterwards.
const Emulator& emulator();

bool is_emulated();

}  // namespace onesum::testing
