// The checks of tests/conformance/ between two worker processes with two GPUs each.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/classes.h"
#include "conformance/core_matrix.h"
#include "conformance/dense_checks.h"
#include "conformance/sparse_checks.h"
#include "gpu/gpus.h"
#include "gpu_processes/gpu_workers.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 2;

void check_all(CrossDeviceOps& ops, const Stage& stage) {
  check_core_matrix(ops, stage);
  check_dense(ops, stage);
  check_sparse(ops, stage);
}

std::string name_of_parameter(const std::string& parameter) {
  std::string name = parameter;
  for (char& c : name) c = c == '/' || c == '#' || c == ':' ? '_' : c;
  return name;
}

class WorkerSpecs : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkerSpecs, Conform) {
  const auto body = [](int rank) -> std::string {
    MultiWorkerAllReduce ops({"/job:worker/task:0", "/job:worker/task:1"}, 2, AllReduceSpecs(GetParam()), 0,
                             0, 10, Cluster::from_environment());
    check_all(ops, Stage::of_worker(rank, kWorkers, {"GPU:0", "GPU:1"}));
    return kGood;
  };
  expect_good(kWorkers, body);
}

INSTANTIATE_TEST_SUITE_P(All, WorkerSpecs,
                         ::testing::Values("nccl", "nccl/xring#2", "nccl/rechd", "nccl/pscpu", "psgpu",
                                           "pscpu/pscpu#2", "pscpu/pscpu#2:100:xring#2", "auto"),
                         [](const auto& its) { return name_of_parameter(its.param); });

class WorkerClasses : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkerClasses, Conform) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [](int rank) -> std::string {
    const auto ops = make_ops(GetParam(), "GPU:7", Cluster::from_environment());
    check_all(*ops, Stage::of_worker(rank, kWorkers, {"GPU:1", "GPU:0"}));
    return kGood;
  };
  expect_good(kWorkers, body);
}

INSTANTIATE_TEST_SUITE_P(All, WorkerClasses, ::testing::ValuesIn(all_variants()),
                         [](const auto& its) { return its.param; });

// CPUs and GPUs in one value, and by the network.
class WorkerPlaces : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkerPlaces, Conform) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    for (const char* variant : {"nccl_default", "plain", "hierarchical_copy_8_packs"}) {
      const auto ops = make_ops(variant, "GPU:7", cluster);
      const std::vector<std::string> mixed{rank == 0 ? "CPU:1" : "GPU:3", "GPU:0"};
      check_all(*ops, Stage::of_worker(rank, kWorkers, mixed));
      check_all(*ops, Stage::of_worker(rank, kWorkers, {"GPU:0"}));
    }
    return kGood;
  };
  expect_good(kWorkers, body, {{"ONESUM_TRANSPORT", GetParam()}});
}

INSTANTIATE_TEST_SUITE_P(All, WorkerPlaces, ::testing::Values("shm", "tcp"),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace onesum::testing
