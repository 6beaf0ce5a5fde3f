// Runs a bound program. The calling thread makes the progress; the engine's helpers take segments.
#pragma once

#include <chrono>

#include "exec/program.h"

namespace onesum::exec {

// Runs the user's function for a pack (plan::Op::kCall) and says where its result is.
class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  virtual std::byte* call(std::uint32_t pack) = 0;
};

class Executor {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Throws deadline_exceeded when the time is over before the work is; what the user's function throws
  // passes. Throws internal, naming a lane and its step, if no lane can go on; programs of verified plans
  // always have one. After an error the contents of results are unspecified and the instance can run again.
  // `caller` is needed only by programs with calls.
  static void run(Instance& instance, Deadline deadline, FunctionCaller* caller = nullptr);

 private:
  class Run;
};

}  // namespace onesum::exec
