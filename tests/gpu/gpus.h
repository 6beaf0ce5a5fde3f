// For tests on GPUs: eight emulated ones, where nothing that a test leaves behind or breaks goes unnoticed,
// or as many real ones as there are.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/cross_device_ops.h>

#include "gpu/emulator.h"

namespace onesum::testing {

// How many this process has.
std::size_t gpus_here();

// Of these numbers of GPUs those that are here; says which are left out.
std::vector<std::size_t> possible(std::initializer_list<std::size_t> counts);

// In a test or SetUp(): skips it where there are fewer.
#define ONESUM_NEEDS_GPUS(count)                                                    \
  if (const std::size_t here = gpus_here(); here < static_cast<std::size_t>(count)) \
  GTEST_SKIP() << "needs " << (count) << " GPUs, " << here << " found"

// The same where they are real: what only the emulator counts, or lets fail.
#define ONESUM_NEEDS_EMULATOR() \
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated GPU, which counts and fails when asked to"

// Of NCCL, on all devices, since the test began; 0 on real GPUs, where nobody counts.
std::size_t count_all_reduces();

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

// Is skipped on real GPUs.
class EmulatedGpuTest : public GpuTest {
 protected:
  void SetUp() override { ONESUM_NEEDS_EMULATOR(); }
};

}  // namespace onesum::testing
