// What is given to GPUs comes in order, whoever has given it: the emulated GPU reports whatever is not.
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/callers.h"
#include "gpu/gpus.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

class Synchronisation : public GpuTest {
 protected:
  void SetUp() override {
    ONESUM_NEEDS_EMULATOR();
    GpuTest::SetUp();
  }
};

// Those of results are waited for before they are written, those of replicas wait until these were read.
TEST_F(Synchronisation, IsOfEveryStream) {
  for (const char* algorithm : {"nccl", "psgpu"}) {
    AllReduceCrossDeviceOps ops(algorithm, 1);
    Callers from(2), to(2);
    from.fill();
    to.fill();
    const std::vector<PerReplica> values = {from.value()};
    std::vector<PerReplica> results = {to.value()};
    ops.batch_reduce_into(ReduceOp::kSum, values, results);
    from.fill();
    to.expect(3);
  }
}

// Two workers in this process, with two GPUs each: replicas of twos, and the streams of each.
struct EmbeddedCallers {
  explicit EmbeddedCallers(std::int64_t count) : elements(count) {
    for (const std::string& worker : workers) {
      for (const int gpu : {0, 1}) {
        streams.push_back(std::make_unique<CallerStream>(gpu));
        memory.push_back(
            std::make_unique<CallerMemory>(gpu, std::vector<float>(static_cast<std::size_t>(elements), 2)));
        memory.back()->fill(*streams.back());
        tensors.push_back(Tensor::borrow(memory.back()->device_memory(), DType::kFloat32, {elements},
                                         Device(worker + "/GPU:" + std::to_string(gpu)),
                                         streams.back()->get()));
      }
    }
  }

  ~EmbeddedCallers() {
    for (const auto& stream : streams) stream->synchronize();
  }
  EmbeddedCallers(const EmbeddedCallers&) = delete;
  EmbeddedCallers& operator=(const EmbeddedCallers&) = delete;

  void expect(std::size_t replica, float expected) {
    memory[replica]->read(*streams[replica]);
    streams[replica]->synchronize();
    EXPECT_EQ(memory[replica]->contents(), std::vector<float>(static_cast<std::size_t>(elements), expected));
  }

  const std::vector<std::string> workers = {"/job:worker/task:0", "/job:worker/task:1"};
  const std::int64_t elements;
  std::vector<std::unique_ptr<CallerStream>> streams;
  std::vector<std::unique_ptr<CallerMemory>> memory;
  std::vector<Tensor> tensors;
};

constexpr std::int64_t kOneRound = 3000;
constexpr std::int64_t kManyRounds = 300000;

// Lanes of several workers, and rounds, which share the memory of messages.
TEST_F(Synchronisation, IsOfLanesAndRounds) {
  for (const char* spec : {"xring", "rechd", "psgpu", "pscpu"}) {
    for (const std::int64_t elements : {kOneRound, kManyRounds}) {
      EmbeddedCallers callers(elements);
      MultiWorkerAllReduce ops(callers.workers, 2, spec, 0, 0, 10,
                               Cluster::embedded(callers.workers, 2, "GPU"));
      std::vector<PerReplica> values = {PerReplica(callers.tensors)};
      ops.batch_reduce_into(ReduceOp::kSum, values, values);
      ops.batch_reduce_into(ReduceOp::kMean, values, values);
      for (std::size_t r = 0; r < callers.tensors.size(); ++r) callers.expect(r, 8);
    }
  }
}

// A round whose messages go one way has no answer to wait for.
TEST_F(Synchronisation, IsOfRoundsWithoutAnswers) {
  EmbeddedCallers from(kManyRounds), to(kManyRounds);
  ReductionToOneDevice ops(from.workers[0] + "/GPU:0", {}, Cluster::embedded(from.workers, 2, "GPU"));
  const std::vector<PerReplica> values = {PerReplica(from.tensors)};
  std::vector<PerReplica> results = {PerReplica(to.tensors[0])};
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  to.expect(0, 8);
}

// Where the host has work to do, a call returns when it is done: the next one may use the memory between
// them.
TEST_F(Synchronisation, IsOfMemoryOfTheHost) {
  ReductionToOneDevice ops("GPU:0");
  Callers from(1), to(1);
  from.fill();
  const std::vector<PerReplica> values = {
      PerReplica(std::vector<Tensor>{vector_of(std::vector<float>(Callers::kElements, 5), "CPU:0"),
                                     std::get<Tensor>(from.value().values()[0])})};
  std::vector<PerReplica> results = {to.value()};
  for (int run = 0; run < 3; ++run) ops.batch_reduce_into(ReduceOp::kSum, values, results);
  to.expect(6);
}

// What an accumulation_fn returns has a stream, too, or is elsewhere.
TEST_F(Synchronisation, IsOfWhatAFunctionReturns) {
  Callers callers(2);
  const PerReplica value = moved(random_value(DType::kFloat32, {Callers::kElements}, cpus(2), 1), gpus(2));
  const auto on_stream = [&](std::span<const Tensor>) {
    callers.fill();
    return std::get<Tensor>(callers.value().values()[0]);
  };
  const auto on_another_gpu = [&](std::span<const Tensor>) {
    callers.fill();
    return std::get<Tensor>(callers.value().values()[1]);
  };
  const auto on_host = [](std::span<const Tensor>) {
    return vector_of(std::vector<float>(Callers::kElements, 3), "CPU:0");
  };
  float expected = 0;
  for (const AccumulationFn& function :
       {AccumulationFn(on_stream), AccumulationFn(on_another_gpu), AccumulationFn(on_host)}) {
    ++expected;
    const Mirrored found = ReductionToOneDevice("GPU:0", function).reduce(ReduceOp::kSum, value, value);
    EXPECT_EQ(contents<float>(std::get<Tensor>(found.values()[1]).copied_to("CPU:0")),
              std::vector<float>(Callers::kElements, expected));
  }
}

// Staging memory goes back when the copy is over, also where that cannot be asked.
TEST_F(Synchronisation, IsOfCopiesThatFail) {
  const Tensor tensor = vector_of(std::vector<float>(Callers::kElements, 1), "GPU:0");
  emulator().fail("event_record", 0, 0);
  expect_error([&] { tensor.copied_to("CPU:0"); }, ErrorCode::kInternal, {"recording an event"});
  EXPECT_EQ(contents<float>(tensor.copied_to("CPU:0")), std::vector<float>(Callers::kElements, 1));
}

// A collective may fail when nothing is left to do but to wait for it.
TEST_F(Synchronisation, EndsWhenACollectiveFails) {
  NcclAllReduce ops;
  Callers callers(2);
  callers.fill();
  std::function<void()> hold_up = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  for (const auto& stream : callers.streams) stream->call(hold_up);
  const PerReplica value = callers.value();
  CommunicationOptions options;
  options.timeout = std::chrono::seconds(20);
  emulator().fail("collective_async_error", 0, 0);
  expect_error([&] { ops.reduce(ReduceOp::kSum, value, value, options); }, ErrorCode::kUnavailable, {"NCCL"});
}

// A call that fails ends nothing of one that has returned early, though they share communicators.
TEST_F(Synchronisation, OutlastsTheFailureOfAnotherCall) {
  NcclAllReduce ops;
  Callers callers(2), others(2);
  std::vector<PerReplica> values = {callers.value()};
  std::vector<PerReplica> other_values = {others.value()};
  ops.batch_reduce_into(ReduceOp::kSum, values, values);  // communicators are made
  callers.fill();
  std::function<void()> hold_up = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  callers.streams[1]->call(hold_up);
  ops.batch_reduce_into(ReduceOp::kSum, values, values);
  emulator().fail("event_record", 0, 0);
  expect_error([&] { ops.batch_reduce_into(ReduceOp::kMean, other_values, other_values); },
               ErrorCode::kInternal, {"recording an event"});
  callers.expect(3);
}

// Objects that know nothing of each other use the same GPUs at the same time.
TEST_F(Synchronisation, IsOfThreads) {
  std::latch is_over(2);
  const auto loop = [&](std::size_t devices) {
    NcclAllReduce ops;
    CommunicationOptions options;
    options.timeout = std::chrono::seconds(20);
    Callers callers(devices);
    callers.fill();
    for (int turn = 0; turn < 100; ++turn) {
      std::vector<PerReplica> values = {callers.value()};
      ops.batch_reduce_into(turn == 0 ? ReduceOp::kSum : ReduceOp::kMean, values, values, options);
    }
    callers.expect(static_cast<float>(devices * (devices + 1)) / 2);
    is_over.arrive_and_wait();
  };
  std::thread other([&] { loop(4); });
  loop(3);
  other.join();
}

}  // namespace
}  // namespace onesum::testing
