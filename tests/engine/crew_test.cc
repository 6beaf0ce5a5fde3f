// The crew: every segment once, results visible, nobody waits for a helper that does nothing.
#include "engine/host/crew.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onesum::engine::host {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

// Counts in plain memory, one place per segment: only the crew's own synchronisation makes this correct.
struct Counts {
  explicit Counts(std::uint32_t segments) : runs(segments, 0) {}
  static void add(void* context, std::uint32_t segment) noexcept {
    ++static_cast<Counts*>(context)->runs[segment];
  }
  bool all_are(int expected) const {
    return std::all_of(runs.begin(), runs.end(), [&](int n) { return n == expected; });
  }
  std::vector<int> runs;
};

TEST(Crew, RunsEverySegmentOnce) {
  for (const unsigned threads : {1U, 2U, 3U, 8U}) {
    Crew crew(threads, 2);
    for (std::uint32_t segments = 0; segments < 200; segments += 1 + segments / 7) {
      Counts counts(segments);
      crew.run(segments, &Counts::add, &counts);
      ASSERT_TRUE(counts.all_are(1)) << segments << " segments, " << threads << " threads";
    }
  }
}

TEST(Crew, TinyJobsInARowNeverMixUp) {
  Crew crew(4, 4);
  Counts even(5);
  Counts odd(7);
  for (int round = 1; round <= 20000; ++round) {
    crew.run(5, &Counts::add, &even);
    crew.run(7, &Counts::add, &odd);
    if (round % 1000 == 0) {
      ASSERT_TRUE(even.all_are(round));
      ASSERT_TRUE(odd.all_are(round));
    }
  }
}

TEST(Crew, SeveralCallersAtOnce) {
  Crew crew(3, 4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (std::uint32_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&crew, &wrong, caller] {
      Counts counts(3 + 10 * caller);
      for (int round = 1; round <= 500; ++round) crew.run(3 + 10 * caller, &Counts::add, &counts);
      if (!counts.all_are(500)) ++wrong;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Crew, ASegmentMayRunSegments) {
  Crew crew(2, 2);
  struct Outer {
    Crew* crew;
    std::vector<Counts> inner;
  } outer{&crew, std::vector<Counts>(20, Counts(9))};
  crew.run(
      20,
      [](void* context, std::uint32_t segment) noexcept {
        auto* o = static_cast<Outer*>(context);
        o->crew->run(9, &Counts::add, &o->inner[segment]);
      },
      &outer);
  for (const Counts& counts : outer.inner) EXPECT_TRUE(counts.all_are(1));
}

TEST(Crew, HelpersTakePart) {
  Crew crew(2, 2);
  struct Seen {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> by_others{0};
  } seen;
  // Segments long enough for a helper to wake up during the job, even on a busy machine.
  for (int round = 0; round < 50 && seen.by_others.load() == 0; ++round) {
    crew.run(
        20,
        [](void* context, std::uint32_t) noexcept {
          auto* s = static_cast<Seen*>(context);
          if (std::this_thread::get_id() != s->caller) ++s->by_others;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        &seen);
  }
  EXPECT_GT(seen.by_others.load(), 0);
}

// The caller has claimed all it can long before a helper is done with its one segment, and must wait for it.
TEST(Crew, WaitsForWhatAHelperHasClaimed) {
  Crew crew(2, 2);
  struct Work {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> started{0};
    std::atomic<int> finished{0};
    std::atomic<int> by_others{0};
  };
  for (int round = 0; round < 20; ++round) {
    Work work;
    crew.run(
        20,
        [](void* context, std::uint32_t) noexcept {
          auto* w = static_cast<Work*>(context);
          ++w->started;
          const bool helper = std::this_thread::get_id() != w->caller;
          std::this_thread::sleep_for(std::chrono::milliseconds(helper ? 60 : 1));
          if (helper) ++w->by_others;
          ++w->finished;
        },
        &work);
    ASSERT_EQ(work.started.load(), 20);
    ASSERT_EQ(work.finished.load(), 20);
    if (work.by_others.load() > 0) return;
  }
  FAIL() << "no helper took part in 20 rounds";
}

// Long idle times between jobs send the helpers to sleep; none of the jobs may depend on their waking up.
TEST(Crew, SleepingHelpersAreWokenOrNotNeeded) {
  Crew crew(3, 8);
  Counts counts(16);
  for (int round = 1; round <= 100; ++round) {
    crew.run(16, &Counts::add, &counts);
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 5)));
  }
  EXPECT_TRUE(counts.all_are(100));
}

TEST(Crew, AForkedChildWorksAlone) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow the fork of a program with threads";
  auto crew = std::make_unique<Crew>(4, 4);
  Counts before(100);
  crew->run(100, &Counts::add, &before);  // the helpers exist now
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // ends a child that hangs
    Counts counts(100);
    for (int round = 0; round < 50; ++round) crew->run(100, &Counts::add, &counts);
    crew.reset();
    _exit(counts.all_are(50) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  Counts after(100);
  crew->run(100, &Counts::add, &after);
  EXPECT_TRUE(after.all_are(1));
}

// A signal that this thread blocks could only be delivered to a helper; it must stay pending instead.
TEST(Crew, HelpersLeaveSignalsToTheProgram) {
  static std::atomic<int> delivered{0};
  struct sigaction action{};
  action.sa_handler = [](int) { ++delivered; };
  struct sigaction saved_action{};
  sigset_t signals;
  sigset_t saved_mask;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  Crew crew(2, 2);
  Counts counts(16);
  crew.run(16, &Counts::add, &counts);  // the helper exists now
  sigaction(SIGUSR1, &action, &saved_action);
  pthread_sigmask(SIG_BLOCK, &signals, &saved_mask);
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(delivered.load(), 0);
  pthread_sigmask(SIG_SETMASK, &saved_mask, nullptr);
  EXPECT_EQ(delivered.load(), 1);
  sigaction(SIGUSR1, &saved_action, nullptr);
}

}  // namespace
}  // namespace onesum::engine::host
