// The bound of a case: the same bytes summed by hand-written loops (cli/bench_kernels.h) on as many threads
// as the library uses, or on one where that is faster.
//
// Between processes each one reads as many bytes as its replicas have, as if they were its share of all
// replicas, and writes as many, as if it could write its share of all results; all at the same time, after
// they have met (cli/bench_meeting.h). No message is written or read.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "cli/bench_kernels.h"
#include "cli/bench_meeting.h"
#include "cli/bench_sampler.h"
#include "cli/bench_workspace.h"

namespace onesum::cli {

// Threads that share out a sum in equal parts. Between begin() and end() the helpers spin, so that handing
// out work costs a cache line's journey; otherwise there are none. One thread at a time may use a Team.
class Team {
 public:
  explicit Team(std::size_t threads) : threads_(threads) {}  // the caller is one of them
  ~Team() { end(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t threads() const { return threads_; }
  void begin();
  void run(SumKernel kernel, const SumArgs& whole);
  void end();

 private:
  void help(std::size_t part);
  void do_part(std::size_t part);

  std::size_t threads_;
  std::vector<std::thread> helpers_;
  SumKernel kernel_ = nullptr;  // null: the helpers end
  SumArgs whole_;
  // Release by the caller, acquire by the helpers: they see kernel_ and whole_, and what the caller wrote
  // before.
  alignas(64) std::atomic<std::size_t> round_{0};
  // Release by the helpers, acquire by the caller: it sees their parts of the result.
  alignas(64) std::atomic<std::size_t> done_{0};
};

enum class BoundKind {
  kInPlace,     // over the results: the inputs, which the library works on in place, stay as they are
  kOutOfPlace,  // from the values to the results
};

// A way of computing the sum by hand. The workspace and the meeting, null for one process, must outlive it.
class Bound : public Subject {
 public:
  Bound(const Workspace& workspace, BoundKind kind, std::size_t threads, Stores stores,
        Meeting* meeting = nullptr);

  void begin_round() override { team_.begin(); }
  void call(std::size_t times) override;
  void end_round() override { team_.end(); }

 private:
  Team team_;
  Meeting* meeting_;
  std::vector<std::byte*> sources_;
  std::vector<std::byte*> destinations_;
  SumKernel kernel_;
  SumArgs whole_;
};

// All ways, measured side by side: in each round the fastest counts. None where there is nothing to do by
// hand (one device of one process in place).
class FastestBound {
 public:
  // `threads`: as many as the library uses. The workspace and the meeting must outlive it.
  FastestBound(const Workspace& workspace, BoundKind kind, std::size_t threads, Meeting* meeting = nullptr);

  bool is_empty() const { return ways_.empty(); }
  void measure_round(const Budget& budget, Lockstep& lockstep);  // the ways share the budget
  const Series& times() const { return times_; }

 private:
  struct Way {
    std::unique_ptr<Bound> bound;
    Series times;
  };
  std::vector<Way> ways_;
  Series times_;
};

}  // namespace onesum::cli
