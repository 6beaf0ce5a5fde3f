// The checks of tests/conformance/ on GPUs, and on CPUs and GPUs in one value.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/classes.h"
#include "conformance/core_matrix.h"
#include "conformance/dense_checks.h"
#include "conformance/pack_checks.h"
#include "conformance/sparse_checks.h"
#include "conformance/worker_checks.h"
#include "gpu/gpus.h"

namespace onesum::testing {
namespace {

using Devices = std::vector<std::string>;

// Whether NCCL can serve them, and has something to do.
bool are_nccls(const Devices& devices) {
  return devices.size() > 1 &&
         std::ranges::all_of(devices, [](const std::string& device) { return device.starts_with("GPU"); });
}

// By the name of its class. Objects do not outlive their tests: what they leave behind would be found.
class Conformance : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  // NCCL does the work if it was asked for and can, and otherwise none of it.
  static void on(const Devices& devices, const std::function<void(CrossDeviceOps&, const Stage&)>& check) {
    const Stage stage(devices);
    SCOPED_TRACE(stage.name());
    const std::size_t before = count_all_reduces();
    check(*make_ops(GetParam(), "GPU:7"), stage);
    const bool is_asked = GetParam().starts_with("nccl");
    EXPECT_EQ(count_all_reduces() > before, is_emulated() && is_asked && are_nccls(devices));
  }
};

const std::vector<Devices>& few_devices() {
  static const std::vector<Devices> all = {{"CPU:0", "GPU:0"}, gpus(1), gpus(2)};
  return all;
}

const std::vector<Devices>& many_devices() {
  static const std::vector<Devices> all = {
      {"GPU:2", "GPU:0", "GPU:1"}, gpus(4), {"GPU:1", "CPU:0", "GPU:0", "CPU:3"}, gpus(8)};
  return all;
}

TEST_P(Conformance, OfDenseValues) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : few_devices()) {
    on(devices, [](CrossDeviceOps& ops, const Stage& stage) {
      check_core_matrix(ops, stage);
      check_known_numbers(ops, stage);
      check_ways(ops, stage);
      check_variables(ops, stage);
      check_nothing_aliases(ops, stage);
    });
  }
}

TEST_P(Conformance, OfSparseValues) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : few_devices()) {
    on(devices, [](CrossDeviceOps& ops, const Stage& stage) {
      check_concatenation(ops, stage);
      check_mixed_batch(ops, stage);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, ::testing::ValuesIn(all_variants()),
                         [](const auto& its) { return its.param; });

class ConformanceOfMany : public Conformance {};

TEST_P(ConformanceOfMany, Devices) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : many_devices()) {
    on(devices, [](CrossDeviceOps& ops, const Stage& stage) {
      check_reduce(ops, stage);
      check_other_operations(ops, stage);
      check_ways(ops, stage);
      check_mixed_batch(ops, stage);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceOfMany,
                         ::testing::Values("plain", "nccl_default", "hierarchical_copy_8_packs"),
                         [](const auto& its) { return its.param; });

// What all classes do in one of two ways.
class ConformanceOfCopies : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<CrossDeviceOps> ops() const { return make_ops(GetParam(), "GPU:7"); }
};

TEST_P(ConformanceOfCopies, Sparse) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : {few_devices()[0], many_devices()[0]}) check_sparse(*ops(), Stage(devices));
}

TEST_P(ConformanceOfCopies, Gather) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : {few_devices()[2], many_devices()[2]}) check_gather(*ops(), Stage(devices));
}

TEST_P(ConformanceOfCopies, Broadcast) {
  ONESUM_NEEDS_GPUS(8);
  for (const Devices& devices : {few_devices()[2], many_devices()[2]})
    check_broadcast_of_types(*ops(), Stage(devices));
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceOfCopies, ::testing::Values("plain", "nccl_1_pack"),
                         [](const auto& its) { return its.param; });

class Packs : public GpuTest {};

TEST_F(Packs, AreThoseOfCpus) {
  ONESUM_NEEDS_GPUS(3);
  check_even_packs(gpus(3));
  check_small_groups(gpus(3));
  check_packs_by_bytes(gpus(3));
}

TEST_F(Packs, UnderARing) {
  ONESUM_NEEDS_GPUS(3);
  check_groups_under_ring(gpus(3));
  check_groups_under_ring(gpus(2));
}

// Workers inside one process share its GPUs.
class EmbeddedWorkers : public GpuTest {};

TEST_F(EmbeddedWorkers, CoreMatrix) {
  ONESUM_NEEDS_GPUS(8);
  const std::vector<Devices> lists = worker_device_lists("GPU");
  for (std::size_t w = 0; w < worker_ways().size(); ++w) {
    check_worker_matrix(worker_ways()[w], lists[w % 2 == 0 ? 0 : 4]);
    check_worker_matrix(worker_ways()[w], lists[w % 2 == 0 ? 1 : 3]);
  }
}

TEST_F(EmbeddedWorkers, ResultsComeInInputOrder) {
  ONESUM_NEEDS_GPUS(8);
  for (const WorkerWay& way : worker_ways()) check_input_order(way, worker_device_lists("GPU")[3]);
}

class EmbeddedAlgorithms : public GpuTest {};

TEST_F(EmbeddedAlgorithms, AreEquivalent) {
  ONESUM_NEEDS_GPUS(8);
  check_equivalence("GPU", 8);
}

// `nccl` over workers that share one GPU is ours.
TEST_F(EmbeddedAlgorithms, HaveTheirOrder) {
  ONESUM_NEEDS_GPUS(8);
  for (const char* algorithm : {"rechd", "pscpu", "direct", "hierarchical_copy", "nccl", "pscpu/pscpu"})
    check_canonical_order("GPU", algorithm);
  check_order_of_ring("GPU");
}

}  // namespace
}  // namespace onesum::testing
