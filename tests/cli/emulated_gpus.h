// The tool on a machine with emulated GPUs.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace onesum::cli {

// What goes before a command, for so many GPUs. Only in an EmulatedGpus test.
std::string with_gpus(int count, const std::string& more = "");

// Where CUDA's libraries are, of the emulated GPU, and the plug-in that needs them.
std::string emulated_gpu_folder();
std::string cuda_plugin();

// Is skipped where the build found no CUDA.
class EmulatedGpus : public ::testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace onesum::cli
