// Large sums between machines.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "machines/on_machines.h"

namespace onesum::testing {
namespace {

TEST_F(MachinesTest, ASlowCableChangesNoResult) {
  constexpr std::size_t kElements = 4 << 20;  // 16 MiB
  for (const int per_machine : {1, 2}) {
    const TwoMachines machines;
    if (!machines.limit("1gbit")) GTEST_SKIP() << "SKIPPED: this kernel has no tbf, or there is no tc(8)";
    const std::vector<WorkerEnd> ends = run_on(machines, per_machine, [](int rank) {
      return LargeSum(Cluster::from_environment(), rank, kElements)()[static_cast<std::size_t>(rank)];
    });
    EXPECT_EQ(texts_of(ends), embedded(per_machine * kMachines, [](const Cluster& cluster) {
                return LargeSum(cluster, -1, kElements)();
              }));
  }
}

}  // namespace
}  // namespace onesum::testing
