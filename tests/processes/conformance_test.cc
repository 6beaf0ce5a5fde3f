// The checks of tests/conformance/ between two worker processes with two CPU devices each.
#include <string>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/classes.h"
#include "conformance/core_matrix.h"
#include "conformance/dense_checks.h"
#include "conformance/sparse_checks.h"
#include "support/tensors.h"
#include "workers.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 2;

class ProcessConformance : public ::testing::TestWithParam<std::string> {};

TEST_P(ProcessConformance, OfEveryClass) {
  const auto body = [](int rank) -> std::string {
    const auto ops = make_ops(GetParam(), "CPU:7", Cluster::from_environment());
    const Stage stage = Stage::of_worker(rank, kWorkers, cpus(2));
    check_core_matrix(*ops, stage);
    if (GetParam() != "accumulation_fn") check_other_operations(*ops, stage);
    check_dense(*ops, stage);
    check_sparse(*ops, stage);
    return "good";
  };
  for (const WorkerEnd& end : run_workers(kWorkers, body)) EXPECT_EQ(end.text, "good") << end.signal;
}

INSTANTIATE_TEST_SUITE_P(All, ProcessConformance, ::testing::ValuesIn(all_variants()),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace onesum::testing
