// The calls of a cluster, one at a time and in call order.
//
// A synchronous call takes its turn and runs on the caller's thread; a posted one runs on a thread of the
// sequence, which is started with the first of them. Both wait for all that came before. Threads: any.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"

namespace onesum::cluster {

class Sequence {
  struct Core;

 public:
  Sequence();
  ~Sequence();  // nothing may be posted or waiting any more
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // The calls that a thread is inside of, innermost first: a function that the user gave to one sequence may
  // call on another.
  struct Inside {
    const void* sequence = nullptr;
    const Inside* outer = nullptr;
  };

  // While it lives, it is this thread's turn.
  class Turn {
   public:
    explicit Turn(Sequence& sequence, Clock::time_point deadline);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    static void wait_for_turn(Core& core, Clock::time_point deadline);

    Sequence& sequence_;
    Inside inside_;
  };

  // Runs `job` in its turn. It must not throw.
  void post(std::function<void()> job);

  // Whether this thread is inside one of the sequence's calls (in a function the user gave): whoever waits
  // for the sequence then would wait for itself.
  bool is_inside() const noexcept;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace onesum::cluster
