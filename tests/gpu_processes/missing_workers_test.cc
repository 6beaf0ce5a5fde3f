// What workers learn that wait for a collective of NCCL which one of them does not come to, or leaves. Some
// of them wait for its greeting, others for NCCL itself.
#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "gpu_processes/gpu_workers.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 3;
constexpr int kMissing = 1;
constexpr seconds kAtOnce{10};  // for a slow machine; the timeout is much longer

PerReplica value() {
  return PerReplica(
      std::vector<Tensor>{vector_of<float>({1, 2, 3}, "GPU:0"), vector_of<float>({4, 5, 6}, "GPU:1")});
}

// What the others expect of a second call.
struct Expected {
  milliseconds timeout = seconds(60);
  ErrorCode code = ErrorCode::kAborted;
  std::string words;  // that the error has
};

std::string call_in_vain(CrossDeviceOps& ops, const Expected& expected) {
  CommunicationOptions options;
  options.timeout = expected.timeout;
  const Clock::time_point start = Clock::now();
  try {
    ops.reduce(ReduceOp::kSum, value(), value(), options);
    return "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.code() != expected.code || text.find(expected.words) == std::string::npos) return text;
  }
  return Clock::now() - start < kAtOnce ? kGood : "late";
}

// All make a call; then the missing one does what it does, and the others call again.
void expect_named(const Expected& expected, const std::function<void(Cluster&, CrossDeviceOps&)>& missing) {
  for (const char* transport : {"shm", "tcp"}) {
    const auto body = [&](int rank) -> std::string {
      Cluster cluster = Cluster::from_environment();
      NcclAllReduce ops(1, cluster);
      ops.reduce(ReduceOp::kSum, value(), value());
      if (rank != kMissing) return call_in_vain(ops, expected);
      std::this_thread::sleep_for(milliseconds(300));  // the others are in the second call
      missing(cluster, ops);
      return kGood;
    };
    SCOPED_TRACE(transport);
    expect_good(kWorkers, body, {{"ONESUM_TRANSPORT", transport}}, kMissing);
  }
}

TEST(MissingWorkers, ExitIsNamedAtOnce) {
  expect_named({.words = "worker 1 (/job:worker/replica:0/task:1) is gone"},
               [](Cluster&, CrossDeviceOps&) { ::_exit(0); });
}

TEST(MissingWorkers, KillIsNamedAtOnce) {
  expect_named({.words = "worker 1 (/job:worker/replica:0/task:1) is gone"},
               [](Cluster&, CrossDeviceOps&) { ::kill(::getpid(), SIGKILL); });
}

TEST(MissingWorkers, ClosedClusterIsNamedAtOnce) {
  expect_named({.words = "worker 1 (/job:worker/replica:0/task:1) closed the cluster after 1 calls"},
               [](Cluster& cluster, CrossDeviceOps&) {
                 cluster.close();
                 std::this_thread::sleep_for(seconds(3));
               });
}

TEST(MissingWorkers, AbsenceIsNamedByTheDeadline) {
  expect_named({.timeout = seconds(2),
                .code = ErrorCode::kDeadlineExceeded,
                .words = "waited for worker 1 (/job:worker/replica:0/task:1), which was last seen"},
               [](Cluster&, CrossDeviceOps&) { std::this_thread::sleep_for(seconds(5)); });
}

// In the middle of the collective, after all have come to it.
void leave_inside(const std::function<void()>& leave, CrossDeviceOps& ops) {
  emulator().fail("collective_hang", 0, 0);
  std::thread leaving([&] {
    std::this_thread::sleep_for(milliseconds(700));
    leave();
  });
  try {
    ops.reduce(ReduceOp::kSum, value(), value());
  } catch (const Error&) {  // its own end
  }
  leaving.join();
  std::this_thread::sleep_for(seconds(1));
}

TEST(MissingWorkers, KillInsideNcclIsNamedAtOnce) {
  ONESUM_NEEDS_EMULATOR();
  expect_named({.words = "worker 1 (/job:worker/replica:0/task:1) is gone"},
               [](Cluster&, CrossDeviceOps& ops) { leave_inside([] { ::kill(::getpid(), SIGKILL); }, ops); });
}

// NCCL ends by itself with the worker's call; either it or the goodbye comes first.
TEST(MissingWorkers, ClosedClusterInsideNcclIsNamedAtOnce) {
  ONESUM_NEEDS_EMULATOR();
  expect_named({.words = "closed the cluster"},
               [](Cluster& cluster, CrossDeviceOps& ops) { leave_inside([&] { cluster.close(); }, ops); });
}

void sleep_in_handler(int /*signal*/) {
  const timespec time{2, 0};
  nanosleep(&time, nullptr);
}

// The thread that calls is held up, so that NCCL notices nothing.
TEST(MissingWorkers, ClosedClusterIsNamedWhereNcclIsSilent) {
  ONESUM_NEEDS_EMULATOR();
  expect_named({.words = "worker 1 (/job:worker/replica:0/task:1) closed the cluster inside call 1 "},
               [](Cluster& cluster, CrossDeviceOps& ops) {
                 std::signal(SIGUSR1, sleep_in_handler);
                 const auto hold_up_and_close = [&, caller = pthread_self()] {
                   pthread_kill(caller, SIGUSR1);
                   std::this_thread::sleep_for(milliseconds(100));
                   cluster.close();
                 };
                 leave_inside(hold_up_and_close, ops);
               });
}

// NCCL says on one worker that somebody is gone, and nobody is.
TEST(MissingWorkers, ALossThatNobodySawIsTold) {
  ONESUM_NEEDS_EMULATOR();
  // Whoever is heard first: the one whose NCCL failed, or one that waited for it.
  const Expected expected{.words = "failed on worker "};
  expect_named(expected, [&](Cluster&, CrossDeviceOps& ops) {
    emulator().fail("collective_async_error", 0, 0);
    call_in_vain(ops, expected);
  });
}

}  // namespace
}  // namespace onesum::testing
