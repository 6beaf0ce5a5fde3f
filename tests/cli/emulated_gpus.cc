#include "cli/emulated_gpus.h"

#if !defined(ONESUM_EMULATED_GPU)
#define ONESUM_EMULATED_GPU ""
#define ONESUM_CUDA_PLUGIN ""
#endif

namespace onesum::cli {

std::string emulated_gpu_folder() { return ONESUM_EMULATED_GPU; }

std::string cuda_plugin() { return ONESUM_CUDA_PLUGIN; }

std::string with_gpus(int count, const std::string& more) {
  return "LD_LIBRARY_PATH='" + emulated_gpu_folder() + "' ONESUM_CUDA_PLUGIN='" + cuda_plugin() +
         "' EMULATED_GPU_DEVICES=" + std::to_string(count) + " " + more;
}

void EmulatedGpus::SetUp() {
  if (emulated_gpu_folder().empty()) GTEST_SKIP() << "there are no emulated GPUs: built without CUDA";
}

}  // namespace onesum::cli
