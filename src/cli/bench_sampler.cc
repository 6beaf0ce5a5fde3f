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

std::vector<double> all_of(const std::vector<std::vector<double>>& rounds) {
  std::vector<double> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return all;
}

// The slowest worker's time of its shortest of a few tries, as any may be interrupted; calls that last longer
// than an interruption are tried once.
double shortest_of_calls(Subject& subject, std::size_t times, Lockstep& lockstep) {
  constexpr double kLong = 20e-3;
  double shortest = lockstep.largest(timed_calls(subject, times));
  for (int tries = 1; tries < 3 && shortest < kLong; ++tries) {
    shortest = std::min(shortest, lockstep.largest(timed_calls(subject, times)));
  }
  return shortest;
}

// How many calls last as long as kShortCall.
std::size_t find_group(Subject& subject, Lockstep& lockstep) {
  constexpr std::size_t kMostCalls = std::size_t{1} << 20;  // ends also with a subject that takes no time
  std::size_t calls = 1;
  double time = shortest_of_calls(subject, calls, lockstep);
  while (time < kShortCall / 2 && calls < kMostCalls) {
    calls *= 2;
    time = shortest_of_calls(subject, calls, lockstep);
  }
  if (time >= kShortCall || calls >= kMostCalls) return calls;
  return static_cast<std::size_t>(std::ceil(kShortCall / time * static_cast<double>(calls)));
}

// The share of one round.
struct Quota {
  Quota(const Budget& budget, std::size_t round) {
    if (budget.samples) {
      least = *budget.samples / budget.rounds + (round < *budget.samples % budget.rounds ? 1 : 0);
      most = least;
    } else {
      seconds = budget.seconds / static_cast<double>(budget.rounds);
      least = (kMinSamples + budget.rounds - 1) / budget.rounds;
      most = std::max(least, kMaxSamples / budget.rounds);
    }
  }

  // How many more to take, after so many in so many seconds, before asking again: as the time that is left
  // may be misjudged, half of what would fill it.
  std::size_t next(std::size_t taken, double elapsed) const {
    if (taken < least) return least - taken;
    if (taken >= most || elapsed >= seconds) return 0;
    const double fitting = (seconds - elapsed) / elapsed * static_cast<double>(taken);
    return static_cast<std::size_t>(std::clamp(fitting / 2, 1.0, static_cast<double>(most - taken)));
  }

  double seconds = 0;
  std::size_t least = 0;
  std::size_t most = 0;
};

}  // namespace

double Series::median() const { return median_of(all_of(rounds)); }

double Series::min() const {
  double least = rounds.at(0).at(0);
  for (const auto& round : rounds) least = std::min(least, *std::min_element(round.begin(), round.end()));
  return least;
}

double Series::percentile(double percent) const {
  std::vector<double> all = all_of(rounds);
  const double rank = std::ceil(percent / 100 * static_cast<double>(all.size()));
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(all.begin(), at, all.end());
  return *at;
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

namespace {

// Memory between workers is taken at its first use, and used by turns.
void warm_up(Subject& subject, Lockstep& lockstep) {
  constexpr double kLeastCalls = 8;
  constexpr double kMostCalls = 200;
  constexpr double kSeconds = 0.002;  // enough, if there is time for the least
  constexpr double kShort = 0.05;
  const double first = lockstep.largest(timed_calls(subject, 1));
  if (lockstep.size() == 1) return;
  const double calls = std::clamp(kSeconds / first, kLeastCalls, kMostCalls);
  subject.call(first < kShort ? static_cast<std::size_t>(calls) : 1);
}

}  // namespace

void measure_round(Subject& subject, const Budget& budget, Series& series, Lockstep& lockstep) {
  const Quota quota(budget, series.rounds.size());
  subject.begin_round();
  lockstep.barrier();
  if (series.rounds.empty()) {
    warm_up(subject, lockstep);
  } else {
    subject.call(1);
  }
  if (series.group == 0) series.group = find_group(subject, lockstep);
  std::vector<double> samples;
  const auto start = now();
  double elapsed = 0;
  while (const std::size_t more = quota.next(samples.size(), elapsed)) {
    if (lockstep.size() > 1) subject.call(1);  // who has agreed on something does not go on at the same time
    for (std::size_t i = 0; i < more; ++i) {
      samples.push_back(timed_calls(subject, series.group) / static_cast<double>(series.group));
    }
    elapsed = lockstep.largest(seconds_since(start));
  }
  subject.end_round();
  series.rounds.push_back(lockstep.largest(samples));
}

}  // namespace onesum::cli
