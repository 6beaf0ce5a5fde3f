// How the bench takes times.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "cli/bench_sampler.h"

namespace onesum::cli {
namespace {

class Counter : public Subject {
 public:
  void begin_round() override { ++begun; }
  void call(std::size_t times) override {
    for (std::size_t i = 0; i < times; ++i) {
      calls = calls + 1;
      if (sleep.count() > 0) std::this_thread::sleep_for(sleep);
    }
  }
  void end_round() override { ++ended; }

  std::chrono::milliseconds sleep{0};
  volatile std::size_t calls = 0;  // volatile: each call takes its time
  int begun = 0;
  int ended = 0;
};

TEST(Sampler, LongCallsAreTimedOneByOneAndAtLeastFiveTimes) {
  Counter subject;
  subject.sleep = std::chrono::milliseconds(2);
  Series series;
  Lockstep alone;
  for (int round = 0; round < 3; ++round)
    measure_round(subject, {.seconds = 1e-6, .rounds = 3}, series, alone);
  EXPECT_EQ(series.group, 1U);
  EXPECT_GE(series.samples(), kMinSamples);
  EXPECT_GE(series.min(), 2e-3);
  EXPECT_GE(series.median(), series.min());
  EXPECT_EQ(subject.begun, 3);
  EXPECT_EQ(subject.ended, 3);
}

TEST(Sampler, ShortCallsAreTimedInGroups) {
  Counter subject;
  Series series;
  Lockstep alone;
  measure_round(subject, {.seconds = 0.01, .rounds = 1}, series, alone);
  EXPECT_GT(series.group, 100U);
  EXPECT_GE(subject.calls, series.group * series.samples());
  EXPECT_LT(series.min(), 1e-6);
}

TEST(Sampler, NeverTakesMoreThanFiveThousandSamples) {
  Counter subject;
  Series series;
  Lockstep alone;
  for (int round = 0; round < 2; ++round) measure_round(subject, {.seconds = 10, .rounds = 2}, series, alone);
  EXPECT_EQ(series.samples(), kMaxSamples);
}

TEST(Sampler, TakesJustAsManySamplesAsAskedFor) {
  Counter subject;
  Series series;
  Lockstep alone;
  for (int round = 0; round < 3; ++round) {
    measure_round(subject, {.seconds = 1e-9, .rounds = 3, .samples = 8}, series, alone);
  }
  EXPECT_EQ(series.samples(), 8U);
  EXPECT_EQ(series.rounds.back().size(), 2U);
}

TEST(Sampler, PercentilesAreSamples) {
  Series series;
  series.rounds = {{10, 9, 8, 7, 6}, {1, 2, 3, 4, 5}};
  EXPECT_DOUBLE_EQ(series.percentile(90), 9);
  EXPECT_DOUBLE_EQ(series.percentile(99), 10);
  EXPECT_DOUBLE_EQ(series.percentile(0), 1);
}

TEST(Sampler, RatiosAreTakenRoundByRound) {
  const Series slow_machine_later{.rounds = {{2, 2, 2}, {2, 2, 2}, {20, 20, 20}}};
  const Series reference{.rounds = {{1, 1, 1}, {1, 1, 1}, {10, 10, 10}}};
  EXPECT_DOUBLE_EQ(ratio(slow_machine_later, reference), 2);
  EXPECT_DOUBLE_EQ(reference.median(), 1);
  EXPECT_EQ(reference.samples(), 9U);
}

}  // namespace
}  // namespace onesum::cli
