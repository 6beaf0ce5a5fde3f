// Runs a bound program. The calling thread makes the progress; the engine's helpers take segments.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/transport.h"
#include "exec/program.h"

namespace onesum::exec {

// Runs the user's function for a pack (plan::Op::kCall) and says where its result is.
class FunctionCaller {
 public:
  struct Arguments {
    std::uint32_t pack = 0;
    std::int32_t device = 0;              // in the plan: where the function works
    std::span<std::byte* const> sources;  // the replicas, in their order
  };
  virtual ~FunctionCaller() = default;
  virtual std::byte* call(const Arguments& arguments) = 0;
};

// Looks after a run that waits for other processes.
class Watch {
 public:
  virtual ~Watch() = default;

  // From now on the round of this beat is the first that is not at its end. In every call: must be cheap.
  virtual void begin(std::uint64_t beat) noexcept = 0;

  // Asked every few turns of a wait; must be cheap.
  virtual bool must_end() const noexcept = 0;

  // Asked when must_end() says so, and at least every kLook while a run waits for rank `peer` in beat `beat`:
  // throws if the run must end.
  virtual void look(int peer, std::uint64_t beat) = 0;
  // Likewise while it waits for a native collective of `ranks`, one of which may be its own.
  virtual void look_at_all(std::span<const int> ranks, std::uint64_t beat) = 0;
  static constexpr std::chrono::milliseconds kLook{100};

  // A wait that was looked after is over.
  virtual void go_on(std::uint64_t beat) noexcept = 0;

  // A message of `peer` is not this call's, or was changed on its way. Throws.
  [[noreturn]] virtual void refuse(int peer, engine::Arrival arrival) = 0;
};

// What a run needs whose program has peers: ranks in other processes.
struct Crossing {
  engine::Transport& transport;
  Watch& watch;
  std::uint64_t first_beat = 0;  // of this run, which takes as many as the program has rounds
  std::uint64_t token = 0;
  bool is_crowded = false;  // more waiters than cores: leave the core to others at once
};

// For whom a run waited.
struct Waiting {
  std::chrono::nanoseconds time{0};  // in all
  std::chrono::nanoseconds longest{0};
  int longest_for = -1;  // rank; -1: nobody was waited for
};

class Executor {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Throws deadline_exceeded when the time is over before the work is; what the user's function or the watch
  // throws passes. Throws internal, naming a lane and its step, if no lane can go on; programs of verified
  // plans always have one. After an error the contents of results are unspecified; an instance without peers
  // can run again, the transport of one with peers cannot be used any more.
  // `caller` is needed only by programs with calls, `crossing` by those with peers.
  static Waiting run(Instance& instance, Deadline deadline, FunctionCaller* caller = nullptr,
                     const Crossing* crossing = nullptr);

 private:
  class Run;
};

}  // namespace onesum::exec
