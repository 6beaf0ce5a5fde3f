// How the bench takes times.
//
// Subjects are measured in rounds, one after the other in each round, so that their ratios survive a machine
// whose speed drifts. In a round a subject is called once unmeasured (other subjects have used the caches),
// then back to back, each call timed, until its share of the budget is used up. Calls shorter than kShortCall
// are timed in groups that last about that long, so that reading the clock does not count; a sample is then
// the mean of its group.
//
// Several workers take as many samples each, call by call the same; a sample is the slowest worker's. Nothing
// but the calls themselves is exchanged while they are timed.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cli/bench_lockstep.h"

namespace onesum::cli {

inline constexpr double kShortCall = 20e-6;  // seconds
inline constexpr std::size_t kMinSamples = 5;
inline constexpr std::size_t kMaxSamples = 5000;

// Something that is measured.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  virtual void begin_round() {}
  virtual void call(std::size_t times) = 0;
  virtual void end_round() {}
};

// The samples of one subject, in seconds, round by round.
struct Series {
  std::vector<std::vector<double>> rounds;
  std::size_t group = 0;  // calls per sample; 0: not known yet

  double median() const;
  double min() const;
  double percentile(double percent) const;  // the sample that so many of a hundred do not exceed
  std::size_t samples() const;
};

// The median over all rounds of one's median over the other's in that round.
double ratio(const Series& one, const Series& other);

struct Budget {
  double seconds = 0.3;  // per subject, over all rounds
  std::size_t rounds = 3;
  std::optional<std::size_t> samples = {};  // just so many instead, over all rounds; not fewer than rounds
};

// Measures one round of a subject and appends it to its series. All workers call it.
void measure_round(Subject& subject, const Budget& budget, Series& series, Lockstep& lockstep);

}  // namespace onesum::cli
