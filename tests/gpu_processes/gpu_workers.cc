#include "gpu_processes/gpu_workers.h"

#include <gtest/gtest.h>

#include "gpu/gpus.h"

namespace onesum::testing {

std::vector<WorkerEnd> run_gpu_workers(int size, const Body& body, const Environment& more) {
  const auto balanced = [&](int rank) {
    const GpuBalance balance;
    std::string text = body(rank);
    return text + balance.find_faults();
  };
  return run_workers(size, balanced, more);
}

void expect_good(int size, const Body& body, const Environment& more, int dying) {
  const std::vector<WorkerEnd> ends = run_gpu_workers(size, body, more);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == dying) continue;
    const WorkerEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.text, kGood) << "worker " << rank << ", signal " << end.signal;
  }
}

}  // namespace onesum::testing
