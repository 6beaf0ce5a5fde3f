// Lets a program end calls that wait for others: for Ctrl-C, cancellation, deadlines of its own.
//
//   onesum::InterruptCheck check([&] { if (is_cancelled) throw Cancelled(); });
//   ops.reduce(…);
#pragma once

#include <functional>

#include <onesum/export.h>

namespace onesum {

// While it lives, calls of the thread that made it ask `check`, some ten times a second, as long as they wait
// for other workers or for earlier calls. If it throws, the call ends with what it threw, as if it had
// failed: together with other processes this ends the group (cluster.h). A run of a MirroredStrategy still
// waits for its replicas. The innermost check of a thread is the one that is asked; it must not call the
// library.
class ONESUM_API InterruptCheck {
 public:
  explicit InterruptCheck(std::function<void()> check) noexcept;
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

  void operator()() const { check_(); }

 private:
  std::function<void()> check_;
  const InterruptCheck* outer_;
};

}  // namespace onesum
