#include "cli/bench_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace onesum::cli {
namespace {

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(now() - start).count(); }

double timed_calls(Subject& subject, std::size_t times) {
  const auto start = now();
  subject.call(times);
  return seconds_since(start);
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of a few tries, as any may be interrupted; calls that last longer than an interruption are tried once.
double shortest_of_calls(Subject& subject, std::size_t times) {
  constexpr double kLong = 20e-3;
  double shortest = timed_calls(subject, times);
  for (int tries = 1; tries < 3 && shortest < kLong; ++tries) {
    shortest = std::min(shortest, timed_calls(subject, times));
  }
  return shortest;
}

// How many calls last as long as kShortCall.
std::size_t find_group(Subject& subject) {
  constexpr std::size_t kMostCalls = std::size_t{1} << 20;  // ends also with a subject that takes no time
  std::size_t calls = 1;
  double time = shortest_of_calls(subject, calls);
  while (time < kShortCall / 2 && calls < kMostCalls) {
    calls *= 2;
    time = shortest_of_calls(subject, calls);
  }
  if (time >= kShortCall || calls >= kMostCalls) return calls;
  return static_cast<std::size_t>(std::ceil(kShortCall / time * static_cast<double>(calls)));
}

}  // namespace

double Series::median() const {
  std::vector<double> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return median_of(std::move(all));
}

double Series::min() const {
  double least = rounds.at(0).at(0);
  for (const auto& round : rounds) least = std::min(least, *std::min_element(round.begin(), round.end()));
  return least;
}

std::size_t Series::samples() const {
  std::size_t count = 0;
  for (const auto& round : rounds) count += round.size();
  return count;
}

double ratio(const Series& one, const Series& other) {
  std::vector<double> ratios;
  for (std::size_t r = 0; r < std::min(one.rounds.size(), other.rounds.size()); ++r) {
    ratios.push_back(median_of(one.rounds[r]) / median_of(other.rounds[r]));
  }
  return median_of(std::move(ratios));
}

void measure_round(Subject& subject, const Budget& budget, Series& series) {
  const double share = budget.seconds / static_cast<double>(budget.rounds);
  const std::size_t least = (kMinSamples + budget.rounds - 1) / budget.rounds;
  const std::size_t most = std::max(least, kMaxSamples / budget.rounds);
  subject.begin_round();
  subject.call(1);
  if (series.group == 0) series.group = find_group(subject);
  std::vector<double> samples;
  const auto start = now();
  while (samples.size() < least || (samples.size() < most && seconds_since(start) < share)) {
    samples.push_back(timed_calls(subject, series.group) / static_cast<double>(series.group));
  }
  subject.end_round();
  series.rounds.push_back(std::move(samples));
}

}  // namespace onesum::cli
