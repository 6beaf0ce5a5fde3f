#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace onesum {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How far it was from what the system said before and after, at most; negative: it went backwards.
Clock::duration farthest(milliseconds time) {
  Clock::duration farthest{0};
  const Clock::time_point end = Clock::now() + time;
  Clock::time_point last = now();
  while (Clock::now() < end) {
    const Clock::time_point before = Clock::now();
    const Clock::time_point counted = now();
    const Clock::time_point after = Clock::now();
    if (counted < last) return counted - last;
    last = counted;
    farthest = std::max({farthest, before - counted, counted - after});
  }
  return farthest;
}

// Ticks are counted for a millisecond at most, at a rate that is right to a hundredth.
constexpr microseconds kTolerance{20};

TEST(Clock, TellsTheTimeOfTheSystem) {
  const Clock::duration off = farthest(milliseconds(200));
  EXPECT_GE(off.count(), 0) << "it went backwards";
  EXPECT_LT(off, kTolerance);
}

TEST(Clock, TellsItAgainAfterAPause) {
  for (const milliseconds pause : {milliseconds(1), milliseconds(30), milliseconds(1100)}) {
    farthest(milliseconds(2));
    std::this_thread::sleep_for(pause);
    EXPECT_LT(farthest(milliseconds(5)), kTolerance) << pause.count() << " ms";
  }
}

TEST(Clock, TellsItToEveryThread) {
  std::vector<std::thread> threads;
  std::vector<Clock::duration> off(6);
  for (Clock::duration& its : off) threads.emplace_back([&its] { its = farthest(milliseconds(100)); });
  for (std::thread& thread : threads) thread.join();
  for (const Clock::duration& its : off) {
    EXPECT_GE(its.count(), 0) << "it went backwards";
    EXPECT_LT(its, kTolerance);
  }
}

}  // namespace
}  // namespace onesum
