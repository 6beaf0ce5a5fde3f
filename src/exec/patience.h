// How a thread waits for other processes: first it looks again and again, then it lets others run, then it
// sleeps until the transport wakes it.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/transport.h"

namespace onesum::exec {

class Patience {
 public:
  Patience(engine::Transport& transport, bool is_crowded) : transport_(transport), is_crowded_(is_crowded) {}
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // Something could be done: the next wait begins anew.
  void reset() noexcept;

  // Nothing could be done: whether the wait is so young that it is worth another look at once, and not even
  // worth a look at the clock. If not, pause().
  bool glance();

  // Returns when it is worth another look, at the latest after `longest`. Says whether it slept, or looked in
  // vain for so long that somebody should ask why.
  bool pause(std::chrono::milliseconds longest);

 private:
  void sleep(std::chrono::milliseconds longest);

  engine::Transport& transport_;
  bool is_crowded_;
  bool is_armed_ = false;
  std::uint32_t glances_ = 0;
  std::uint32_t looks_ = 0;
  std::chrono::steady_clock::time_point sleep_after_;
};

}  // namespace onesum::exec
