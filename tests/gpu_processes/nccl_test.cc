// Worker processes with GPUs: two workers with two GPUs each, as NCCL and our own algorithms serve them.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "gpu_processes/gpu_workers.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 2;
const std::vector<std::string> kGpus = {"GPU:0", "GPU:1"};

std::vector<std::string> worker_names() { return {"/job:worker/task:0", "/job:worker/task:1"}; }

std::unique_ptr<MultiWorkerAllReduce> ops_of(const char* algorithm, const Cluster& cluster) {
  return std::make_unique<MultiWorkerAllReduce>(worker_names(), 2, AllReduceSpecs{{algorithm, 1, -1}}, 0, 0,
                                                10, cluster);
}

// Replica r holds whole numbers that follow from r.
Tensor numbers(std::size_t elements, int replica, const std::string& device) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = static_cast<float>((static_cast<int>(i) + replica * 5) % 13);
  return vector_of(values, Device(device));
}

PerReplica own_value(std::size_t elements, int rank) {
  std::vector<Tensor> tensors;
  for (int g = 0; g < 2; ++g)
    tensors.push_back(numbers(elements, 2 * rank + g, kGpus[static_cast<std::size_t>(g)]));
  return PerReplica(std::move(tensors));
}

// Empty if every component is the sum over `replicas`.
std::string check(const Mirrored& sum, std::size_t elements, const std::vector<int>& replicas) {
  std::vector<float> expected(elements, 0);
  for (const int r : replicas) {
    const std::vector<float> its = contents<float>(numbers(elements, r, "CPU:0"));
    for (std::size_t i = 0; i < elements; ++i) expected[i] += its[i];
  }
  if (sum.values().size() != 2) return "components: " + std::to_string(sum.values().size());
  for (const Value& value : sum.values()) {
    if (contents<float>(std::get<Tensor>(value).copied_to("CPU:0")) != expected) return "wrong sum";
  }
  return {};
}

class GpuWorkers : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuWorkers, AddUp) {
  const char* const algorithm = GetParam();
  for (const char* transport : {"shm", "tcp"}) {
    const auto body = [&](int rank) -> std::string {
      const Cluster cluster = Cluster::from_environment();
      const auto ops = ops_of(algorithm, cluster);
      for (const std::size_t elements : {0U, 1U, 999U, 300000U}) {
        for (int again = 0; again < 2; ++again) {
          const PerReplica value = own_value(elements, rank);
          const std::string wrong = check(ops->reduce(ReduceOp::kSum, value, value), elements, {0, 1, 2, 3});
          if (!wrong.empty()) return std::to_string(elements) + " elements: " + wrong;
        }
      }
      return kGood;
    };
    SCOPED_TRACE(transport);
    expect_good(kWorkers, body, {{"ONESUM_TRANSPORT", transport}});
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuWorkers,
                         ::testing::Values("nccl", "nccl/xring", "nccl/rechd", "nccl/pscpu", "xring", "pscpu",
                                           "psgpu", "pscpu/pscpu", "direct", "rechd", "auto"),
                         [](const auto& its) {
                           std::string name = its.param;
                           for (char& c : name) c = c == '/' ? '_' : c;
                           return name;
                         });

// Bits of floats, whole numbers or not, are those of one process where the order is ours.
TEST(GpuWorkersBits, AreThoseOfCpus) {
  const auto body = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt8, DType::kComplex64}) {
      const auto devices = cpus(2);
      const PerReplica here = random_value(dtype, {5001}, devices, static_cast<std::uint64_t>(rank) + 3);
      std::vector<Tensor> there;
      for (std::size_t g = 0; g < 2; ++g)
        there.push_back(std::get<Tensor>(here.values()[g]).copied_to(kGpus[g]));
      const auto ops = ops_of("auto", cluster);
      const PerReplica on_gpus(there);
      const Mirrored expected = ops->reduce(ReduceOp::kMean, here, here);
      const Mirrored found = ops->reduce(ReduceOp::kMean, on_gpus, on_gpus);
      for (std::size_t g = 0; g < 2; ++g) {
        const Tensor back = std::get<Tensor>(found.values()[g]).copied_to("CPU:0");
        if (!same_bits(back, bytes_of(std::get<Tensor>(expected.values()[g])))) return "other bits";
      }
    }
    return kGood;
  };
  expect_good(kWorkers, body);
}

// A collective that hangs on one worker is ended by the call's deadline on both, and after shrink() all goes
// on.
TEST(GpuWorkersFailures, AHangEndsByTheDeadline) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    CommunicationOptions options;
    {
      const auto ops = ops_of("nccl", cluster);
      const PerReplica value = own_value(1000, rank);
      ops->reduce(ReduceOp::kSum, value, value);
      if (rank == 1) emulator().fail("collective_hang", 0, 0);
      options.timeout = std::chrono::milliseconds(1500);
      try {
        ops->reduce(ReduceOp::kSum, value, value, options);
        return "no error";
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kDeadlineExceeded && error.code() != ErrorCode::kUnavailable &&
            error.code() != ErrorCode::kAborted) {
          return error.what();
        }
      }
    }
    const Cluster again = cluster.shrink();
    const auto ops = ops_of("nccl", again);
    const PerReplica value = own_value(1000, rank);
    const std::string wrong = check(ops->reduce(ReduceOp::kSum, value, value), 1000, {0, 1, 2, 3});
    return wrong.empty() ? kGood : wrong;
  };
  expect_good(kWorkers, body);
}

// NCCL knows tensors by their size only. Calls that were made before, and look alike to it, are told from
// each other before anything is given to it.
TEST(GpuWorkersFailures, CallsThatDifferAreNotAddedUp) {
  const auto body = [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    {
      const auto ops = ops_of("nccl", cluster);
      const PerReplica value = own_value(1000, rank);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) ops->reduce(op, value, value);
      try {
        ops->reduce(rank == 0 ? ReduceOp::kSum : ReduceOp::kMean, value, value);
        return "no error";
      } catch (const Error& error) {
        const bool is_named = std::string(error.what()).find("workers call differently") != std::string::npos;
        if (error.code() != ErrorCode::kInvalidArgument || !is_named) return error.what();
      }
    }
    const Cluster again = cluster.shrink();
    const PerReplica value = own_value(1000, rank);
    const std::string wrong =
        check(ops_of("nccl", again)->reduce(ReduceOp::kSum, value, value), 1000, {0, 1, 2, 3});
    return wrong.empty() ? kGood : wrong;
  };
  for (const char* transport : {"shm", "tcp"}) {
    SCOPED_TRACE(transport);
    expect_good(kWorkers, body, {{"ONESUM_TRANSPORT", transport}});
  }
}

}  // namespace
}  // namespace onesum::testing
