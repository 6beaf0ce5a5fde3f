// The NCCL engine, through the plug-in.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "engine/gpu.h"
#include "gpu/gpus.h"
#include "gpu/native_cases.h"
#include "gpu/nccl_peer.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::testing {
namespace {

using engine::Communicator;
using engine::NativeCollective;
using engine::NativeEngine;
using Member = NativeEngine::Member;
using Members = std::vector<Member>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// One that no test works on, if there are as many.
int callers_device() { return std::min(5, static_cast<int>(gpus_here()) - 1); }

constexpr Element kAdded[] = {Element::kInt8,    Element::kUInt8,  Element::kInt32,   Element::kUInt32,
                              Element::kInt64,   Element::kUInt64, Element::kFloat16, Element::kBFloat16,
                              Element::kFloat32, Element::kFloat64};
constexpr Element kNotAdded[] = {Element::kBool,      Element::kInt16,      Element::kUInt16,
                                 Element::kComplex64, Element::kComplex128, Element::kInt128,
                                 Element::kUInt128};

// Ranks 0, 1, … on devices 0, 1, …
Members first_devices(int count) {
  Members members;
  for (int i = 0; i < count; ++i) members.push_back({i, i});
  return members;
}

// Every test leaves nothing behind on the GPUs, breaks none of their rules, and the caller's device is the
// current one.
class NcclEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    emulator().reset();
    emulator().set_device(callers_device());
    emulator().live(&before_);
    platform_ = open_platform();
  }

  void TearDown() override {
    int device = -1;
    emulator().get_device(&device);
    EXPECT_EQ(device, callers_device());
    EXPECT_EQ(count_communicators(), 0U);
    platform_.reset();
    EmulatedGpuLive live{};
    emulator().live(&live);
    EXPECT_EQ(live.device_allocations, before_.device_allocations);
    EXPECT_EQ(live.pinned_allocations, before_.pinned_allocations);
    EXPECT_EQ(live.streams, before_.streams);
    EXPECT_EQ(live.events, before_.events);
    EXPECT_EQ(emulator().violations(), 0U) << emulator().last_violation();
  }

  static std::size_t count_communicators() {
    EmulatedGpuLive live{};
    emulator().live(&live);
    return live.communicators;
  }

  NativeEngine& engine() { return platform_->native(); }
  std::unique_ptr<Communicator> join(const Members& members) {
    return engine().join(engine().make_id(), static_cast<int>(members.size()), members);
  }
  NativeRun run_of(Communicator& communicator, const Members& members, const NativeCase& what) {
    return {*platform_, communicator, static_cast<int>(members.size()), members, what};
  }
  std::string result_of(Communicator& communicator, const Members& members, const NativeCase& what) {
    return run_case(*platform_, communicator, static_cast<int>(members.size()), members, what);
  }

  // Until it throws, which it must.
  static void poll_to_the_end(Communicator& communicator) {
    for (;;) {
      communicator.is_ready();
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  const NativeCase sum_{NativeCollective::kAllReduce, Element::kFloat32, -1, false, {1000}};
  HangGuard guard_;
  std::unique_ptr<engine::GpuPlatform> platform_;
  EmulatedGpuLive before_{};
};

class NcclEngineOn : public NcclEngine, public ::testing::WithParamInterface<int> {};

TEST_P(NcclEngineOn, AddsAndBroadcastsEveryType) {
  ONESUM_NEEDS_GPUS(GetParam());
  const Members members = first_devices(GetParam());
  const int last = GetParam() - 1;
  const auto communicator = join(members);
  ASSERT_EQ(communicator->devices(), members.size());
  for (const Element element : kAdded) {
    for (const bool in_place : {false, true}) {
      const std::vector<std::size_t> counts{5, 0, 1000, 1};
      const NativeCase cases[] = {{NativeCollective::kAllReduce, element, -1, in_place, counts},
                                  {NativeCollective::kReduce, element, 0, in_place, counts},
                                  {NativeCollective::kReduce, element, last, in_place, counts},
                                  {NativeCollective::kBroadcast, element, 0, in_place, counts},
                                  {NativeCollective::kBroadcast, element, last, in_place, counts}};
      for (const NativeCase& what : cases) EXPECT_EQ(result_of(*communicator, members, what), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NcclEngineOn, ::testing::Values(1, 2, 3, 4, 8));

TEST_F(NcclEngine, BroadcastsWhatItDoesNotAdd) {
  ONESUM_NEEDS_GPUS(2);
  const Members members = first_devices(2);
  const auto communicator = join(members);
  for (const Element element :
       {Element::kInt16, Element::kUInt16, Element::kComplex64, Element::kComplex128}) {
    EXPECT_EQ(result_of(*communicator, members, {NativeCollective::kBroadcast, element, 1, true, {3, 40}}),
              "");
  }
}

TEST_F(NcclEngine, SaysWhatItAdds) {
  ONESUM_NEEDS_GPUS(2);
  for (const Element element : kAdded) EXPECT_TRUE(engine().can_sum(element)) << to_string(element);
  for (const Element element : kNotAdded) EXPECT_FALSE(engine().can_sum(element)) << to_string(element);
  EXPECT_THAT(engine().description(), ::testing::MatchesRegex("NCCL 2\\.[0-9]+\\.[0-9]+"));

  const Members members = first_devices(2);
  const auto communicator = join(members);
  await_ready(*communicator);
  NativeRun run =
      run_of(*communicator, members, {NativeCollective::kAllReduce, Element::kInt16, -1, true, {4}});
  expect_invalid([&] { run.give(); }, {"NCCL 2.", "int16"});
  EXPECT_TRUE(communicator->is_ready());
}

TEST_F(NcclEngine, MembersMayBeAnyDevices) {
  ONESUM_NEEDS_GPUS(7);
  const Members members{{6, 0}, {1, 1}, {4, 2}};
  const auto communicator = join(members);
  EXPECT_EQ(result_of(*communicator, members, {NativeCollective::kReduce, Element::kFloat32, 1, false, {64}}),
            "");
}

TEST_F(NcclEngine, OneCallForEachPieceThatIsNotEmpty) {
  ONESUM_NEEDS_EMULATOR();
  const Members members = first_devices(3);
  const auto communicator = join(members);
  await_ready(*communicator);
  NativeRun nothing =
      run_of(*communicator, members, {NativeCollective::kAllReduce, Element::kInt8, -1, true, {0, 0}});
  nothing.give();
  EXPECT_TRUE(communicator->is_ready());
  EXPECT_EQ(emulator().operations("all_reduce"), 0U);
  EXPECT_EQ(result_of(*communicator, members,
                      {NativeCollective::kAllReduce, Element::kInt8, -1, true, {0, 7, 0, 9}}),
            "");
  EXPECT_EQ(emulator().operations("all_reduce"), 2 * members.size());
}

TEST_F(NcclEngine, GroupsSideBySide) {
  ONESUM_NEEDS_GPUS(3);
  const Members here = first_devices(2);
  const Members there{{1, 0}, {2, 1}};
  const auto first = join(here);
  const auto second = join(there);
  EXPECT_EQ(result_of(*first, here, sum_), "");
  EXPECT_EQ(result_of(*second, there, sum_), "");
  EXPECT_EQ(result_of(*first, here, sum_), "");
}

TEST_F(NcclEngine, WhatWasGivenComesToItsEnd) {
  ONESUM_NEEDS_GPUS(2);
  const Members members = first_devices(2);
  auto communicator = join(members);
  await_ready(*communicator);
  NativeRun run =
      run_of(*communicator, members, {NativeCollective::kAllReduce, Element::kFloat32, -1, false, {1 << 17}});
  run.give();
  await_ready(*communicator);
  run.record();
  communicator.reset();
  run.await_marks();
  EXPECT_EQ(run.find_faults(), "");
}

TEST_F(NcclEngine, TwoProcesses) {
  ONESUM_NEEDS_GPUS(4);
  const Members here{{0, 0}, {1, 2}};
  const Members there{{2, 1}, {3, 3}};
  const NativeEngine::Id id = engine().make_id();
  NcclPeer peer = NcclPeer::working(id, 4, there);
  const auto communicator = engine().join(id, 4, here);
  for (const NativeCase& what : cases_between_processes()) {
    EXPECT_EQ(run_case(*platform_, *communicator, 4, here, what), "");
  }
  EXPECT_EQ(peer.wait(), "all right");
}

TEST_F(NcclEngine, JoiningDoesNotWait) {
  const auto alone = engine().join(engine().make_id(), 2, Members{{0, 0}});
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(alone->is_ready());
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST_F(NcclEngine, AbortWhileJoining) {
  ONESUM_NEEDS_GPUS(2);
  const auto alone = engine().join(engine().make_id(), 3, Members{{0, 0}, {1, 1}});
  EXPECT_FALSE(alone->is_ready());
  EXPECT_FALSE(alone->is_aborted());
  alone->abort();
  EXPECT_TRUE(alone->is_aborted());
  EXPECT_EQ(count_communicators(), 0U);
  expect_error([&] { alone->is_ready(); }, ErrorCode::kUnavailable, {"NCCL 2.", "aborted"});
}

TEST_F(NcclEngine, RefusedByTheLibrary) {
  ONESUM_NEEDS_EMULATOR();
  expect_error([&] { engine().join(engine().make_id(), 2, Members{{2, 0}, {3, 9}}); },
               ErrorCode::kUnavailable, {"NCCL 2.", "GPU:3", "joining", "invalid argument", "rank 9 of 2"});
  EXPECT_EQ(count_communicators(), 0U);
  EXPECT_EQ(emulator().violations(), 1U);
  emulator().reset();

  const Members members = first_devices(2);
  const auto communicator = join(members);
  EXPECT_EQ(result_of(*communicator, members, sum_), "");
}

TEST_F(NcclEngine, WorkRefusedByTheLibrary) {
  ONESUM_NEEDS_EMULATOR();
  const auto communicator = join(first_devices(2));
  await_ready(*communicator);
  std::byte of_the_host[4];
  const engine::NativeShare shares[] = {{of_the_host, of_the_host}, {of_the_host, of_the_host}};
  const std::size_t counts[] = {1};
  const auto give = [&] {
    communicator->give({NativeCollective::kAllReduce, Element::kFloat32, -1, counts, shares});
  };
  expect_error(give, ErrorCode::kUnavailable,
               {"NCCL 2.", "on GPU:0, GPU:1", "a collective", "invalid argument"});
  EXPECT_EQ(emulator().violations(), 1U);
  emulator().reset();
  expect_error(give, ErrorCode::kUnavailable, {"invalid argument"});
  EXPECT_EQ(emulator().violations(), 0U);
}

TEST_F(NcclEngine, FailureOfJoining) {
  ONESUM_NEEDS_EMULATOR();
  emulator().fail("comm_init", 0, 0);
  const auto communicator = join({{3, 0}});
  expect_error([&] { poll_to_the_end(*communicator); }, ErrorCode::kUnavailable,
               {"NCCL 2.", "GPU:3", "unhandled system error"});
  expect_error([&] { communicator->is_ready(); }, ErrorCode::kUnavailable, {"unhandled system error"});
  communicator->abort();
  EXPECT_EQ(count_communicators(), 0U);
}

TEST_F(NcclEngine, FailureOfJoiningOfOneOfThree) {
  ONESUM_NEEDS_EMULATOR();
  emulator().fail("comm_init", 1, 0);
  const auto communicator = join(first_devices(3));
  expect_error([&] { poll_to_the_end(*communicator); }, ErrorCode::kUnavailable, {"NCCL 2.", "GPU:"});
}

TEST_F(NcclEngine, FailureWhileItWorks) {
  ONESUM_NEEDS_EMULATOR();
  const Members members = first_devices(2);
  const auto communicator = join(members);
  await_ready(*communicator);
  NativeRun run = run_of(*communicator, members, sum_);
  emulator().fail("collective_async_error", 1, 0);
  run.give();
  expect_error([&] { poll_to_the_end(*communicator); }, ErrorCode::kUnavailable,
               {"NCCL 2.", "GPU:", "remote process exited"});
  expect_error([&] { run.give(); }, ErrorCode::kUnavailable, {"remote process exited"});
  communicator->abort();
  run.record();
  run.await_marks();
}

TEST_F(NcclEngine, AbortEndsWhatHangs) {
  ONESUM_NEEDS_EMULATOR();
  const Members members = first_devices(3);
  const auto communicator = join(members);
  await_ready(*communicator);
  NativeRun run = run_of(*communicator, members, sum_);
  emulator().fail("collective_hang", 0, 0);
  run.give();
  await_ready(*communicator);
  run.record();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(run.is_reached());
  EXPECT_TRUE(communicator->is_ready());

  std::thread([&] { communicator->abort(); }).join();
  run.await_marks();
  EXPECT_TRUE(communicator->is_aborted());
  EXPECT_EQ(count_communicators(), 0U);
  communicator->abort();
  expect_error([&] { communicator->is_ready(); }, ErrorCode::kUnavailable, {"aborted"});
  expect_error([&] { run.give(); }, ErrorCode::kUnavailable, {"aborted"});
}

TEST_F(NcclEngine, WhatHangsEndsWithTheCommunicator) {
  ONESUM_NEEDS_EMULATOR();
  const Members members = first_devices(2);
  auto communicator = join(members);
  await_ready(*communicator);
  NativeRun run = run_of(*communicator, members, sum_);
  emulator().fail("collective_hang", 0, 0);
  run.give();
  await_ready(*communicator);
  run.record();
  const auto start = steady_clock::now();
  communicator.reset();
  EXPECT_LT(steady_clock::now() - start, milliseconds(2500));
  EXPECT_EQ(count_communicators(), 0U);
  run.await_marks();
}

// Until what one was given has entered the queues, or it is gone.
TEST_F(NcclEngine, TurnsOfCommunicators) {
  ONESUM_NEEDS_GPUS(2);
  const Members members = first_devices(2);
  auto first = join(members);
  const auto second = join(members);
  const auto third = join(members);
  for (Communicator* const communicator : {first.get(), second.get(), third.get()})
    await_ready(*communicator);
  EXPECT_TRUE(first->take_turn());
  EXPECT_FALSE(second->take_turn());
  EXPECT_TRUE(first->is_ready());
  EXPECT_TRUE(second->take_turn());
  EXPECT_FALSE(first->take_turn());
  second->abort();
  EXPECT_TRUE(first->take_turn());
  EXPECT_FALSE(third->take_turn());
  first.reset();
  EXPECT_TRUE(third->take_turn());
}

// Threads that abort at any moment, two at once, while another polls and gives.
TEST_F(NcclEngine, AbortAtAnyMoment) {
  ONESUM_NEEDS_GPUS(2);
  const Members members = first_devices(2);
  for (int round = 0; round < 30; ++round) {
    const auto communicator = join(members);
    NativeRun run = run_of(*communicator, members, sum_);
    std::atomic<bool> is_over = false;
    std::thread worker([&] {
      EXPECT_THROW(
          for (;;) {
            if (communicator->is_ready()) run.give();
          },
          Error);
      is_over = true;
    });
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
      communicator->abort();
    });
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    communicator->abort();
    worker.join();
    other.join();
    EXPECT_TRUE(is_over);
    run.record();
    run.await_marks();
  }
}

TEST_F(NcclEngine, PeerDies) {
  ONESUM_NEEDS_EMULATOR();
  const Members here = first_devices(2);
  const NativeEngine::Id id = engine().make_id();
  const NcclPeer peer = NcclPeer::idle(id, 3, Members{{2, 2}});
  const auto communicator = engine().join(id, 3, here);
  await_ready(*communicator);
  NativeRun run(*platform_, *communicator, 3, here, sum_);
  run.give();
  await_ready(*communicator);
  run.record();
  peer.signal(SIGKILL);
  expect_error([&] { poll_to_the_end(*communicator); }, ErrorCode::kUnavailable,
               {"NCCL 2.", "GPU:", "remote process exited"});
  EXPECT_THROW(communicator->is_ready(), engine::PeerLost);
  communicator->abort();
  run.await_marks();
}

TEST_F(NcclEngine, PeerDiesBeforeItIsNeeded) {
  ONESUM_NEEDS_EMULATOR();
  const NativeEngine::Id id = engine().make_id();
  const NcclPeer peer = NcclPeer::idle(id, 2, Members{{2, 1}});
  const auto communicator = engine().join(id, 2, Members{{0, 0}});
  await_ready(*communicator);
  peer.signal(SIGKILL);
  expect_error([&] { poll_to_the_end(*communicator); }, ErrorCode::kUnavailable, {"GPU:0"});
}

TEST_F(NcclEngine, PeerThatIsStoppedIsNotWaitedFor) {
  ONESUM_NEEDS_GPUS(3);
  const Members here{{0, 0}};
  const NativeEngine::Id id = engine().make_id();
  const NcclPeer peer = NcclPeer::idle(id, 2, Members{{2, 1}});
  auto communicator = engine().join(id, 2, here);
  await_ready(*communicator);
  NativeRun run(*platform_, *communicator, 2, here, sum_);
  run.give();
  await_ready(*communicator);
  run.record();
  peer.signal(SIGSTOP);
  const auto start = steady_clock::now();
  communicator.reset();
  EXPECT_LT(steady_clock::now() - start, milliseconds(2500));
  run.await_marks();
}

}  // namespace
}  // namespace onesum::testing
