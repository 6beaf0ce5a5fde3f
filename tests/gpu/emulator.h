// The functions of the emulated GPU, in the library that LD_LIBRARY_PATH leads to.
#pragma once

#include <string>

#include "emulated_gpu/emulated_gpu.h"

namespace onesum::testing {

struct Emulator {
  std::string file;
  decltype(&emulated_gpu_live) live = nullptr;
  decltype(&emulated_gpu_violations) violations = nullptr;
  decltype(&emulated_gpu_last_violation) last_violation = nullptr;
  decltype(&emulated_gpu_operations) operations = nullptr;
  decltype(&emulated_gpu_fail) fail = nullptr;
  decltype(&emulated_gpu_reset) reset = nullptr;
  int (*get_device)(int*) = nullptr;  // cudaGetDevice
  int (*set_device)(int) = nullptr;   // cudaSetDevice
};

// Eight GPUs; violations are counted. Ends the program if libcudart.so.13 is another.
const Emulator& emulator();

}  // namespace onesum::testing
