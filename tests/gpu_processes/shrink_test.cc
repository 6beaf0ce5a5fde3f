// After a death the workers that are left form groups of their own, of NCCL too.
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "gpu_processes/gpu_workers.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

const std::vector<std::string> kGpus = {"GPU:0", "GPU:1"};

std::vector<std::string> names_of(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& worker : cluster.workers()) names.push_back(worker.to_string());
  return names;
}

// Two replicas of the worker that once had this number, full of 2^number.
PerReplica value_of(int number) {
  std::vector<Tensor> tensors;
  for (const std::string& gpu : kGpus)
    tensors.push_back(vector_of(std::vector<float>(1009, static_cast<float>(1 << number)), gpu));
  return PerReplica(std::move(tensors));
}

// What is wrong with the sum of the workers of a cluster, whose numbers these are, by NCCL; nothing: empty.
std::string find_faults(const Cluster& cluster, int number, const std::vector<int>& numbers) {
  MultiWorkerAllReduce ops(names_of(cluster), 2, "nccl", 0, 0, 10, cluster);
  float expected = 0;
  for (const int other : numbers) expected += 2 * static_cast<float>(1 << other);
  const PerReplica value = value_of(number);
  const std::size_t before = count_all_reduces();
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
  if (is_emulated() && count_all_reduces() != before + 2) return "NCCL was not used";
  for (std::size_t d = 0; d < 2; ++d) {
    if (contents<float>(sum.tensor(d)) != std::vector<float>(1009, expected)) return "another sum";
  }
  return {};
}

struct Death {
  int workers;
  int rank;
  const char* name;
};

class GpuDeaths : public ::testing::TestWithParam<Death> {};

TEST_P(GpuDeaths, LeaveTheOthersWithNewGroups) {
  const auto& [workers, dying, name] = GetParam();
  const auto body = [&](int number) -> std::string {
    std::vector<int> all, left;
    for (int w = 0; w < workers; ++w) {
      all.push_back(w);
      if (w != dying) left.push_back(w);
    }
    Cluster cluster = Cluster::from_environment();
    if (const std::string faults = find_faults(cluster, number, all); !faults.empty()) return faults;
    if (number == dying) std::_Exit(3);
    try {
      find_faults(cluster, number, all);
      return "no error";
    } catch (const Error& error) {
      const std::string expected = "task:" + std::to_string(dying);
      if (std::string(error.what()).find(expected) == std::string::npos) return error.what();
    }
    for (int again = 0; again < 2; ++again) {  // the second time nobody has died
      cluster = cluster.shrink();
      if (cluster.size() != workers - 1) return "the new group has " + std::to_string(cluster.size());
      for (int call = 0; call < 2; ++call) {
        if (const std::string faults = find_faults(cluster, number, left); !faults.empty()) return faults;
      }
    }
    return kGood;
  };
  expect_good(workers, body, {}, dying);
}

INSTANTIATE_TEST_SUITE_P(All, GpuDeaths,
                         ::testing::Values(Death{2, 1, "last_of_2"}, Death{2, 0, "first_of_2"},
                                           Death{3, 0, "first_of_3"}, Death{3, 1, "second_of_3"},
                                           Death{3, 2, "last_of_3"}),
                         [](const auto& its) { return std::string(its.param.name); });

// Groups of some workers, side by side with the group of all.
TEST(GpuGroups, OfSomeWorkers) {
  const auto body = [](int number) -> std::string {
    Cluster cluster = Cluster::from_environment();
    const std::vector<int> own = number == 1 ? std::vector<int>{1} : std::vector<int>{2, 0};
    const Cluster some = cluster.split(own);
    const Cluster twin = cluster.duplicate();
    for (int call = 0; call < 2; ++call) {
      for (const auto& [group, numbers] :
           {std::pair(cluster, std::vector<int>{0, 1, 2}), std::pair(some, own),
            std::pair(twin, std::vector<int>{0, 1, 2})}) {
        if (const std::string faults = find_faults(group, number, numbers); !faults.empty()) return faults;
      }
    }
    return kGood;
  };
  expect_good(3, body);
}

// Two clusters of the same workers and GPUs, whose calls are made at the same time, in one order here and in
// another one there.
TEST(GpuGroups, OfTheSameWorkersInAnotherOrder) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [](int number) -> std::string {
    Cluster cluster = Cluster::from_environment();
    const Cluster twin = cluster.duplicate();
    NcclAllReduce ops(1, number == 0 ? cluster : twin);
    NcclAllReduce others(1, number == 0 ? twin : cluster);
    const PerReplica value = value_of(number);
    const ValueDestination pair{value, value};
    for (int call = 0; call < 20; ++call) {
      Work first = ops.batch_reduce_async(ReduceOp::kSum, std::span(&pair, 1));
      Work second = others.batch_reduce_async(ReduceOp::kSum, std::span(&pair, 1));
      for (Work* const work : {&first, &second}) {
        if (contents<float>(work->results()[0].tensor(0)) != std::vector<float>(1009, 6))
          return "another sum";
      }
    }
    return kGood;
  };
  expect_good(2, body);
}

// Where each of two workers waits for the other one in another cluster, both say so at the deadline.
TEST(GpuGroups, ThatWaitForEachOtherAreNamed) {
  const auto body = [](int number) -> std::string {
    Cluster cluster = Cluster::from_environment();
    const Cluster twin = cluster.duplicate();
    NcclAllReduce ops(1, cluster);
    NcclAllReduce others(1, twin);
    const PerReplica value = value_of(number);
    for (NcclAllReduce* const both : {&ops, &others}) both->reduce(ReduceOp::kSum, value, value);
    CommunicationOptions options;
    options.timeout = std::chrono::seconds(2);
    try {
      (number == 0 ? ops : others).reduce(ReduceOp::kSum, value, value, options);
      return "no error";
    } catch (const Error& error) {
      const std::string expected = "waited for worker " + std::to_string(1 - number) + " (";
      if (error.code() != ErrorCode::kDeadlineExceeded) return error.what();
      if (std::string(error.what()).find(expected) == std::string::npos) return error.what();
    }
    std::this_thread::sleep_for(
        std::chrono::seconds(1));  // the other one is to hear it from its own deadline
    return kGood;
  };
  expect_good(2, body);
}

}  // namespace
}  // namespace onesum::testing
