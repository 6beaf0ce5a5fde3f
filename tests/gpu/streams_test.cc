// The caller's streams: a call comes after what they were given before it, and before what they are given
// afterwards; and it does not keep the host waiting for that.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/callers.h"
#include "gpu/gpus.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

class Streams : public GpuTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::unique_ptr<CrossDeviceOps> ops() const {
    const std::string algorithm = GetParam();
    if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
    return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
  }
};

TEST_P(Streams, AreWaitedForAndWait) {
  const std::unique_ptr<CrossDeviceOps> its = ops();
  for (const std::size_t devices : possible({1, 2, 4})) {
    Callers callers(devices);
    for (int round = 0; round < 3; ++round) {
      callers.fill();
      std::vector<PerReplica> values = {callers.value()};
      its->batch_reduce_into(ReduceOp::kSum, values, values);
      its->batch_reduce_into(ReduceOp::kMean, values, values);  // of equal numbers
      callers.expect(static_cast<float>(devices * (devices + 1)) / 2);
      // Pinned memory now holds the sums.
      callers.memory.clear();
      for (std::size_t d = 0; d < devices; ++d) {
        callers.memory.push_back(std::make_unique<CallerMemory>(
            static_cast<int>(d), std::vector<float>(Callers::kElements, static_cast<float>(d + 1))));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Streams,
                         ::testing::Values("one_device", "hierarchical_copy", "nccl", "pscpu", "psgpu",
                                           "direct"),
                         [](const auto& its) { return std::string(its.param); });

// The host goes on while a stream is held up before the call.
class EarlyReturn : public GpuTest {};

TEST_F(EarlyReturn, WhereEveryTensorHasAStream) {
  ONESUM_NEEDS_GPUS(2);
  for (const char* algorithm : {"one_device", "nccl"}) {
    std::unique_ptr<CrossDeviceOps> ops = std::make_unique<ReductionToOneDevice>();
    if (algorithm == std::string("nccl")) ops = std::make_unique<NcclAllReduce>();
    Callers callers(2);
    std::vector<PerReplica> values = {callers.value()};
    callers.fill();
    ops->batch_reduce_into(ReduceOp::kSum, values, values);  // communicators are made
    std::atomic<bool> may_go_on = false;
    std::function<void()> hold_up = [&] { may_go_on.wait(false); };
    callers.fill();
    callers.streams[1]->call(hold_up);
    ops->batch_reduce_into(ReduceOp::kSum, values, values);
    EXPECT_FALSE(callers.streams[0]->is_done());
    may_go_on = true;
    may_go_on.notify_all();
    callers.expect(3);
  }
}

// What is prepared runs again before its last run is done, in the same memory.
TEST_F(EarlyReturn, OfPreparedCalls) {
  ONESUM_NEEDS_GPUS(3);
  ReductionToOneDevice ops("GPU:1");
  Callers callers(3);
  std::vector<PerReplica> values = {callers.value()};
  PreparedReduce prepared = ops.prepare(ReduceOp::kMean, values, values);
  callers.fill();
  for (int run = 0; run < 20; ++run) prepared.run();
  callers.expect(2);
}

std::unique_ptr<CrossDeviceOps> with_temporaries() { return std::make_unique<HierarchicalCopyAllReduce>(); }

// An object may go before what it gave to the GPUs is done.
TEST_F(EarlyReturn, OutlivesItsObject) {
  ONESUM_NEEDS_GPUS(4);
  Callers callers(4);
  callers.fill();
  std::vector<PerReplica> values = {callers.value()};
  with_temporaries()->batch_reduce_into(ReduceOp::kSum, values, values);
  callers.expect(10);
}

// Callers whose streams know nothing of each other share the memory of one object. The result is where the
// last step is: nothing goes back to where the first one was.
TEST_F(EarlyReturn, OfCallersInTurns) {
  ONESUM_NEEDS_GPUS(4);
  ReductionToOneDevice ops("GPU:0");
  Callers from[] = {Callers(4), Callers(4)};
  Callers to[] = {Callers(1), Callers(1)};
  for (int turn = 0; turn < 5; ++turn) {
    for (const std::size_t caller : {0U, 1U}) {
      from[caller].fill();
      const std::vector<PerReplica> values = {from[caller].value()};
      std::vector<PerReplica> results = {to[caller].value()};
      ops.batch_reduce_into(ReduceOp::kSum, values, results);
    }
  }
  for (Callers& caller : to) caller.expect(10);
}

// Results that the host writes wait for their streams, too.
TEST_F(EarlyReturn, NotOfMergedRows) {
  ONESUM_NEEDS_GPUS(2);
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  const std::vector<PerReplica> values = {PerReplica(std::vector<Value>{
      slices({{1, 2}, {3, 4}}, {5, 5}, Shape{9, 2}, "GPU:0"), slices({{5, 6}}, {2}, Shape{9, 2}, "GPU:1")})};
  Callers callers(2);
  std::vector<Value> results;
  std::vector<std::unique_ptr<CallerMemory>> rows;
  for (std::size_t d = 0; d < 2; ++d) {
    rows.push_back(std::make_unique<CallerMemory>(static_cast<int>(d), std::vector<float>(4, -1)));
    rows.back()->fill(*callers.streams[d]);
    results.emplace_back(IndexedSlices{rows.back()->tensor(*callers.streams[d]).reshaped({2, 2}),
                                       Tensor::empty(DType::kInt64, {2}, gpus(d + 1).back()), Shape{9, 2}});
  }
  std::vector<PerReplica> into = {PerReplica(results)};
  ReductionToOneDevice().batch_reduce_into(ReduceOp::kSum, values, into, options);
  for (std::size_t d = 0; d < 2; ++d) {
    rows[d]->read(*callers.streams[d]);
    callers.streams[d]->synchronize();
    EXPECT_EQ(rows[d]->contents(), (std::vector<float>{5, 6, 4, 6}));
  }
}

// A result of the library's has no stream: whoever gets it may use it at once.
TEST_F(EarlyReturn, NotWithFreshResults) {
  ONESUM_NEEDS_GPUS(2);
  Callers callers(2);
  callers.fill();
  const PerReplica value = callers.value();
  NcclAllReduce ops;
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
  EXPECT_EQ(contents<float>(std::get<Tensor>(sum.values()[1]).copied_to("CPU:0")),
            std::vector<float>(Callers::kElements, 3));
}

// Copies wait for a stream, too.
TEST_F(EarlyReturn, NotOfCopies) {
  Callers callers(1);
  callers.fill();
  EXPECT_EQ(contents<float>(callers.memory[0]->tensor(*callers.streams[0]).copied_to("CPU:0")),
            std::vector<float>(Callers::kElements, 1));
}

TEST(StreamsOfOthers, AreRefused) {
  float number = 0;
  expect_invalid([&] { Tensor::borrow(&number, DType::kFloat32, {}, "CPU:0", nullptr); },
                 {"CPU:0", "stream", "GPU"});
}

}  // namespace
}  // namespace onesum::testing
