// For tests on emulated GPUs: eight of them, and nothing that a test leaves behind or breaks goes unnoticed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/cross_device_ops.h>

#include "gpu/emulator.h"

namespace onesum::testing {

// "GPU:0" … "GPU:n-1"
std::vector<std::string> gpus(std::size_t count);

// The full form of GPU:index.
std::string full_gpu_name(std::size_t index);

// Component i copied to devices[i].
PerReplica moved(const DistributedValues& values, const std::vector<std::string>& devices);

// Every component holds the bits of the other's, wherever they are.
::testing::AssertionResult same_on(const DistributedValues& found, const DistributedValues& expected);

// No rule of CUDA or NCCL was broken, and memory, events, streams and communicators are as before.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  EmulatedGpuLive before_{};
};

}  // namespace onesum::testing
