#include "gpu_processes/gpu_workers.h"

#include <gtest/gtest.h>

#include "gpu/gpus.h"

namespace onesum::testing {
namespace {

constexpr int kGpusEach = 2;

// In a child: a process that has asked CUDA something must not fork.
int gpus_of_machine() {
  static const int found = std::stoi(run_alone([] { return std::to_string(gpus_here()); }));
  return found;
}

// On real GPUs, which NCCL does not let two workers share, each has some of its own.
Environment gpus_of(int rank) {
  if (is_emulated()) return {};
  std::string list = std::to_string(rank * kGpusEach);
  for (int g = 1; g < kGpusEach; ++g) list.append(",").append(std::to_string(rank * kGpusEach + g));
  return {{"CUDA_VISIBLE_DEVICES", list}};
}

}  // namespace

std::vector<WorkerEnd> run_gpu_workers(int size, const Body& body, const Environment& more) {
  const auto balanced = [&](int rank) {
    const GpuBalance balance;
    std::string text = body(rank);
    return text + balance.find_faults();
  };
  const auto environment = [&](int rank) {
    Environment its = gpus_of(rank);
    its.insert(more.begin(), more.end());
    return its;
  };
  return run_workers(size, balanced, environment);
}

void expect_good(int size, const Body& body, const Environment& more, int dying) {
  if (gpus_of_machine() < size * kGpusEach) {
    GTEST_SKIP() << "needs " << size * kGpusEach << " GPUs, " << gpus_of_machine() << " found";
  }
  const std::vector<WorkerEnd> ends = run_gpu_workers(size, body, more);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == dying) continue;
    const WorkerEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.text, kGood) << "worker " << rank << ", signal " << end.signal;
  }
}

}  // namespace onesum::testing
