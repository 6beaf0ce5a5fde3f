// onesum/interrupt.h: calls that wait can be ended; and how long one waits for a Work.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using namespace std::chrono_literals;

using testing::contents;
using testing::Door;
using testing::one_pair;
using testing::scalars;

using Floats = std::vector<float>;
using Components = std::span<const Tensor>;

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

class InterruptTest : public ::testing::Test {
 protected:
  // Holds all calls of its cluster up until the door opens.
  Work held_up(const Cluster& cluster) {
    ReductionToOneDevice ops(
        {},
        [this](Components components) {
          door_.pass();
          return components[0];
        },
        cluster);
    Work work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"));
    door_.await_arrivals();
    return work;
  }

  testing::HangGuard hang_guard_;
  Door door_;
};

TEST_F(InterruptTest, EndsACallThatWaitsForItsTurn) {
  const Cluster cluster = Cluster::local();
  ReductionToOneDevice ops({}, {}, cluster);
  Work first = held_up(cluster);
  {
    int asked = 0;
    const InterruptCheck check([&] {
      if (++asked == 2) throw Interrupted();
    });
    EXPECT_THROW(ops.reduce(ReduceOp::kSum, scalars<float>({1, 2}), "CPU:0"), Interrupted);
    EXPECT_EQ(asked, 2);
  }
  door_.open();
  first.wait();
  // Its place in the line is free again.
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, scalars<float>({1, 2}), "CPU:0")), Floats{3});
}

TEST_F(InterruptTest, AsksTheInnermostCheckOfTheThreadOnly) {
  const Cluster cluster = Cluster::local();
  ReductionToOneDevice ops({}, {}, cluster);
  Work first = held_up(cluster);
  const InterruptCheck outer([] { FAIL() << "asked the outer one"; });
  {
    const InterruptCheck inner([] { throw Interrupted(); });
    EXPECT_THROW(ops.reduce(ReduceOp::kSum, scalars<float>({1}), "CPU:0"), Interrupted);
  }
  door_.open();
  first.wait();
}

TEST_F(InterruptTest, ARunWaitsForItsReplicas) {
  MirroredStrategy strategy({"CPU:0", "CPU:1"});
  std::atomic<bool> is_interrupted = false;
  std::atomic<int> ended = 0;
  const InterruptCheck check([&] {
    is_interrupted = true;
    throw Interrupted();
  });
  const auto wait = [&](ReplicaContext&) {
    while (!is_interrupted) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
    ++ended;
  };
  EXPECT_THROW(strategy.run(wait), Interrupted);
  EXPECT_EQ(ended, 2);
}

TEST_F(InterruptTest, WorksAreWaitedForSoLong) {
  Work work = held_up(Cluster::local());
  EXPECT_FALSE(work.wait_for(0ms));
  EXPECT_FALSE(work.wait_for(20ms));
  door_.open();
  EXPECT_TRUE(work.wait_for(20s));
  EXPECT_TRUE(work.wait_for(0ms));
}

TEST_F(InterruptTest, WorksSayWhenTheyAreDone) {
  Work work = held_up(Cluster::local());
  std::atomic<int> calls = 0;
  for (int i = 0; i < 3; ++i) work.when_done([&] { ++calls; });
  EXPECT_EQ(calls, 0);
  door_.open();
  while (calls < 3) std::this_thread::sleep_for(1ms);
  work.wait();
  work.when_done([&] { ++calls; });
  EXPECT_EQ(calls, 4);
}

TEST_F(InterruptTest, BorrowedMemoryHasAnOwner) {
  auto memory = std::make_shared<Floats>(Floats{1, 2});
  Tensor tensor = Tensor::borrow(memory->data(), DType::kFloat32, {2}, "CPU:0", {}, memory);
  const std::weak_ptr<Floats> watched = memory;
  memory.reset();
  Tensor reshaped = tensor.reshaped({2, 1});
  tensor = {};
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(reshaped.data<float>()[1], 2);
  reshaped = {};
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace onesum
