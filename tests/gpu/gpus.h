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

// Component i, dense or sparse, copied to devices[i].
PerReplica moved(const DistributedValues& values, const std::vector<std::string>& devices);

// Every component holds the bits of the other's, wherever they are.
::testing::AssertionResult same_on(const DistributedValues& found, const DistributedValues& expected);

// From its making on: whether rules of CUDA or NCCL were broken, and whether memory, events, streams and
// communicators are as they were.
class GpuBalance {
 public:
  GpuBalance();
  // What is wrong; nothing: empty.
  std::string find_faults() const;

 private:
  EmulatedGpuLive before_{};
};

// Each test leaves the GPUs as it found them.
class GpuTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(balance_.find_faults(), ""); }

 private:
  GpuBalance balance_;
};

}  // namespace onesum::testing
