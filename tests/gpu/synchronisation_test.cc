// What is given to GPUs comes in order, whoever has given it: the emulated GPU reports whatever is not.
#include <chrono>
#include <functional>
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

class Synchronisation : public GpuTest {};

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

// Rounds of one call share the memory of messages, and so do calls.
TEST_F(Synchronisation, IsOfRounds) {
  constexpr std::int64_t kManyElements = 300000;
  const std::vector<std::string> workers = {"/job:worker/task:0", "/job:worker/task:1"};
  for (const char* algorithm : {"xring", "rechd", "psgpu"}) {
    MultiWorkerAllReduce ops(workers, 2, {{algorithm, 1, -1}}, 0, 0, 10,
                             Cluster::embedded(workers, 2, "GPU"));
    std::vector<std::unique_ptr<CallerStream>> streams;
    std::vector<std::unique_ptr<CallerMemory>> memory;
    std::vector<Tensor> tensors;
    for (const std::string& worker : workers) {
      for (const int gpu : {0, 1}) {
        streams.push_back(std::make_unique<CallerStream>(gpu));
        memory.push_back(std::make_unique<CallerMemory>(gpu, std::vector<float>(kManyElements, 2)));
        memory.back()->fill(*streams.back());
        tensors.push_back(Tensor::borrow(memory.back()->device_memory(), DType::kFloat32, {kManyElements},
                                         Device(worker + "/GPU:" + std::to_string(gpu)),
                                         streams.back()->get()));
      }
    }
    std::vector<PerReplica> values = {PerReplica(std::move(tensors))};
    ops.batch_reduce_into(ReduceOp::kSum, values, values);
    ops.batch_reduce_into(ReduceOp::kMean, values, values);
    for (std::size_t r = 0; r < streams.size(); ++r) {
      memory[r]->read(*streams[r]);
      streams[r]->synchronize();
      EXPECT_EQ(memory[r]->contents(), std::vector<float>(kManyElements, 8)) << algorithm;
    }
  }
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
  const auto loop = [](std::size_t devices) {
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
  };
  std::thread other([&] { loop(4); });
  loop(3);
  other.join();
}

}  // namespace
}  // namespace onesum::testing
