// The caller's streams in worker processes, and those that an emulated GPU has in a process of its own only.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <onesum/onesum.h>

#include "gpu/callers.h"
#include "gpu/emulator.h"
#include "gpu/gpus.h"
#include "processes/workers.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 2;

std::unique_ptr<MultiWorkerAllReduce> ops_of(const char* spec, const Cluster& cluster) {
  return std::make_unique<MultiWorkerAllReduce>(
      std::vector<std::string>{"/job:worker/task:0", "/job:worker/task:1"}, 2, spec, 0, 0, 10, cluster);
}

std::string violation() { return emulator().violations() == 0 ? "good" : emulator().last_violation(); }

void expect_good(const std::vector<WorkerEnd>& ends, const std::string& what) {
  for (const WorkerEnd& end : ends) EXPECT_EQ(end.text, "good") << what << ", signal " << end.signal;
}

// A worker with streams that has made its first call.
struct Started {
  explicit Started(const char* spec) : ops(ops_of(spec, cluster)) {
    callers.fill();
    values = {callers.value()};
    ops->batch_reduce_into(ReduceOp::kSum, values, values);
  }

  Cluster cluster = Cluster::from_environment();
  std::unique_ptr<MultiWorkerAllReduce> ops;
  Callers callers{2};
  std::vector<PerReplica> values;
};

TEST(StreamsOfWorkers, AreWaitedForAndWait) {
  ONESUM_NEEDS_EMULATOR();
  for (const char* algorithm : {"nccl", "nccl/rechd", "nccl/xring#2", "xring", "pscpu", "psgpu"}) {
    const auto body = [&](int) -> std::string {
      Started its(algorithm);
      its.ops->batch_reduce_into(ReduceOp::kMean, its.values, its.values);
      if (its.callers.read() != std::vector<float>{6, 6}) return "wrong sum";
      return violation();
    };
    expect_good(run_workers(kWorkers, body), algorithm);
  }
}

// A message is what the caller's stream has written, and what the stream is given then sees what came.
TEST(StreamsOfWorkers, AreOfMessagesToo) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    Callers callers(1);
    callers.fill();  // with 1
    if (rank == 0) {
      messages.send(callers.value().tensor(), 1);
    } else {
      const Tensor got =
          Tensor::from<float>(std::vector<float>(Callers::kElements), {Callers::kElements}, "CPU:0");
      messages.recv(got, 0);
      if (got.data<float>()[0] != 1) return "wrong message";
    }
    return violation();
  };
  expect_good(run_workers(kWorkers, body), "message");
}

// No stream waits for other processes: whether they come is seen inside the call.
TEST(StreamsOfWorkers, DoNotWaitForOthers) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [&](int rank) -> std::string {
    Started its("nccl");
    if (rank == 1) emulator().fail("collective_hang", 0, 0);
    CommunicationOptions options;
    options.timeout = std::chrono::milliseconds(1500);
    try {
      its.ops->batch_reduce_into(ReduceOp::kSum, its.values, its.values, options);
    } catch (const Error&) {
      return violation();
    }
    return "no error";
  };
  expect_good(run_workers(kWorkers, body), "a hang");
}

// One who waits for a collective hears that the others will not come, though their GPUs are well.
TEST(StreamsOfWorkers, EndWithTheEpoch) {
  ONESUM_NEEDS_EMULATOR();
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const has_heard = new (shared) std::atomic<bool>(false);
  const auto body = [&](int rank) -> std::string {
    Started its("nccl");
    if (rank == 1) its.values = {PerReplica(vector_of<float>({1}, "GPU:0"))};
    try {
      its.ops->batch_reduce_into(ReduceOp::kSum, its.values, its.values);
      return "no error";
    } catch (const Error& error) {
      if (std::string(error.what()).find("differently") == std::string::npos) return error.what();
    }
    if (rank == 0) has_heard->store(true);
    while (!has_heard->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return violation();
  };
  expect_good(run_workers(kWorkers, body), "another call");
  munmap(shared, sizeof(std::atomic<bool>));
}

// The default stream of each GPU, which other streams of the process may wait for. Ours do not.
const Environment kWithDefaultStream = {{"EMULATED_GPU_ALLOW_DEFAULT_STREAM", "1"}};

TEST(DefaultStreams, AreThoseOfTheirDevices) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [](int) -> std::string {
    Callers callers(3, StreamKind::kDefault);
    callers.fill();
    std::vector<PerReplica> values = {callers.value()};
    NcclAllReduce nccl;
    ReductionToOneDevice ours;
    nccl.batch_reduce_into(ReduceOp::kSum, values, values);
    ours.batch_reduce_into(ReduceOp::kMean, values, values);
    if (callers.read() != std::vector<float>{6, 6, 6}) return "wrong sum";
    return violation();
  };
  expect_good(run_workers(1, body, kWithDefaultStream), "default streams");
}

TEST(DefaultStreams, DoNotHoldUpOthers) {
  ONESUM_NEEDS_EMULATOR();
  const auto body = [](int) -> std::string {
    Door door;
    std::function<void()> hold_up = [&] { door.pass(); };
    CallerStream by_default(0, StreamKind::kDefault);
    by_default.call(hold_up);
    CommunicationOptions options;
    options.timeout = std::chrono::seconds(5);
    const PerReplica value(vector_of<float>({1, 2}, "GPU:0"));
    std::string result;
    try {
      const Mirrored sum = ReductionToOneDevice().reduce(ReduceOp::kSum, value, value, options);
      result = violation();
    } catch (const Error& error) {
      result = error.what();
    }
    door.open();
    return result;
  };
  expect_good(run_workers(1, body, kWithDefaultStream), "a default stream");
}

}  // namespace
}  // namespace onesum::testing
