// What queues are told to wait for, and what the host has to wait for by itself, with queues that do nothing.
#include "exec/fronts.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace onesum::testing {
namespace {

struct IdleMark final : engine::Mark {
  bool is_reached() override { return reached; }
  bool reached = false;
};

struct IdleQueue final : engine::Queue {
  void reduce(const engine::QueuedReduce& /*work*/) override {}
  void copy_rows(const engine::QueuedRows& /*work*/) override {}
  void record(engine::Mark& mark) override {
    static_cast<IdleMark&>(mark).reached = false;
    recorded.push_back(static_cast<IdleMark*>(&mark));
  }
  void wait_for(engine::Mark& mark) override { waited_for.push_back(&mark); }

  std::vector<IdleMark*> recorded;
  std::vector<engine::Mark*> waited_for;
};

struct IdleEngine final : engine::QueuedEngine {
  explicit IdleEngine(int number) : its_index(number) {}
  std::string_view device_type() const noexcept override { return "GPU"; }
  void* allocate(std::size_t /*bytes*/) override { return nullptr; }
  void release(void* /*memory*/, std::size_t /*bytes*/) noexcept override {}
  std::string description() const override { return "idle"; }
  int index() const noexcept override { return its_index; }
  bool reaches(const engine::QueuedEngine& /*other*/) const noexcept override { return true; }
  void* allocate_staging(std::size_t /*bytes*/) override { return nullptr; }
  void release_staging(void* /*memory*/, std::size_t /*bytes*/) noexcept override {}
  void check_form(const engine::ReduceForm& /*form*/) const override {}
  engine::Queue& queue(std::size_t number) override { return queues_of_lanes[number]; }
  std::size_t queues() const noexcept override { return std::size(queues_of_lanes); }
  std::unique_ptr<engine::Mark> make_mark() override { return std::make_unique<IdleMark>(); }
  void check() override {}
  void record(void* /*stream*/, engine::Mark& /*mark*/) override {}
  void let_wait(void* /*stream*/, engine::Mark& /*mark*/) override {}

  int its_index;
  IdleQueue queues_of_lanes[3];
};

struct IdleCommunicator final : engine::Communicator {
  std::size_t devices() const noexcept override { return std::size(queues); }
  int device(std::size_t number) const noexcept override { return static_cast<int>(number); }
  engine::Queue& queue(std::size_t device) noexcept override { return queues[device]; }
  bool is_ready() override { return true; }
  bool take_turn() override { return true; }
  void give(const engine::NativeWork& /*work*/) override {}
  void abort() noexcept override {}
  bool is_aborted() const noexcept override { return false; }
  void rejoin(const engine::NativeId& /*id*/) override {}

  IdleQueue queues[2];
};

class FrontsTest : public ::testing::Test {
 protected:
  static constexpr exec::Unit kGpu = 1;

  FrontsTest() {
    program_.queued = {&engine_, &other_};
    fronts_ = std::make_unique<exec::Fronts>(program_, 1, 3);
  }

  // Lane 0 runs a collective after work of its own.
  void run_collective(bool spans_processes) {
    fronts_->move(0, 0, kGpu);
    fronts_->give(0, 0);
    fronts_->enter(0, 0, communicator_);
    fronts_->leave(0, 0, communicator_, spans_processes);
  }
  IdleQueue& queue(std::size_t lane) { return engine_.queues_of_lanes[lane]; }

  IdleEngine engine_{0};
  IdleEngine other_{1};
  IdleCommunicator communicator_;
  exec::Program program_;
  std::unique_ptr<exec::Fronts> fronts_;
};

TEST_F(FrontsTest, QueuesWaitForACollectiveOfThisProcess) {
  run_collective(false);
  EXPECT_TRUE(fronts_->move(0, 0, kGpu));
  EXPECT_EQ(queue(0).waited_for.size(), 1U);
}

TEST_F(FrontsTest, ACollectiveWaitsForTheLaneOnAllDevices) {
  run_collective(false);
  for (const IdleQueue& its : communicator_.queues) {
    ASSERT_FALSE(its.waited_for.empty());
    EXPECT_EQ(its.waited_for.front(), queue(0).recorded.back());
  }
}

TEST_F(FrontsTest, TheHostWaitsForALaneThatItFollows) {
  fronts_->move(0, 0, kGpu);
  fronts_->give(0, 0);
  ASSERT_FALSE(fronts_->follow(0, 1, 0));
  queue(0).recorded.back()->reached = true;
  EXPECT_TRUE(fronts_->follow(0, 1, 0));
}

// Nobody knows when the others come: a queue that waited would hold up whatever else it is given.
TEST_F(FrontsTest, TheHostWaitsForACollectiveWithOtherProcesses) {
  run_collective(true);
  EXPECT_FALSE(fronts_->move(0, 0, kGpu));
  communicator_.queues[0].recorded.back()->reached = true;
  EXPECT_TRUE(fronts_->move(0, 0, kGpu));
  EXPECT_TRUE(queue(0).waited_for.empty());
}

TEST_F(FrontsTest, AnotherLaneWaitsForACollectiveWithOtherProcessesOnTheHost) {
  run_collective(true);
  fronts_->move(0, 1, kGpu);
  EXPECT_FALSE(fronts_->follow(0, 1, 0));
  communicator_.queues[0].recorded.back()->reached = true;
  EXPECT_TRUE(fronts_->follow(0, 1, 0));
  EXPECT_TRUE(queue(1).waited_for.empty());
}

TEST_F(FrontsTest, WhoIsFollowedAgainBringsWhatItWasGivenSince) {
  for (const std::uint32_t lane : {0U, 1U}) fronts_->move(0, lane, kGpu);
  for (const std::size_t times : {1U, 2U}) {
    fronts_->give(0, 0);
    EXPECT_TRUE(fronts_->follow(0, 1, 0));
    EXPECT_EQ(queue(0).recorded.size(), times);
  }
}

// Lane 1 follows lane 0 twice, which has followed lane 2 meanwhile: then it follows lane 2, too.
TEST_F(FrontsTest, WhoIsFollowedBringsWhatItFollows) {
  for (const std::uint32_t lane : {0U, 1U, 2U}) {
    fronts_->move(0, lane, kGpu);
    fronts_->give(0, lane);
  }
  EXPECT_TRUE(fronts_->follow(0, 1, 0));
  EXPECT_TRUE(fronts_->follow(0, 1, 0));
  EXPECT_EQ(queue(0).recorded.size(), 1U);
  EXPECT_TRUE(fronts_->follow(0, 0, 2));
  EXPECT_TRUE(fronts_->follow(0, 1, 0));
  EXPECT_EQ(queue(0).recorded.size(), 2U);
}

}  // namespace
}  // namespace onesum::testing
