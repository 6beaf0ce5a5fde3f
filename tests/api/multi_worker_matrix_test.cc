// docs/semantics.md, 6.5 and 9.2, over two workers with CPUs.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/worker_checks.h"

namespace onesum::testing {
namespace {

TEST(MultiWorkerMatrix, ReducesAndBroadcasts) {
  for (const WorkerWay& way : worker_ways()) {
    for (const std::vector<std::string>& devices : worker_device_lists("CPU"))
      check_worker_matrix(way, devices);
  }
}

// 6.5
TEST(MultiWorkerMatrix, ResultsComeInInputOrderWhateverSpecsTheyFallUnder) {
  for (const WorkerWay& way : worker_ways()) check_input_order(way, worker_device_lists("CPU")[3]);
}

}  // namespace
}  // namespace onesum::testing
