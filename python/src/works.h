// Works as Python has them: with the cluster they run on, and known to the end of the interpreter.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>

#include "python_error.h"

namespace onesum::python {

// All of it with the GIL, which it gives up while it waits. Going waits for the work. But where a signal's
// handler raises (Ctrl-C) while somebody waits for it, or for its going, the work is left to itself.
class PendingWork {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  PendingWork(Work work, Cluster cluster);
  ~PendingWork();
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(const PendingWork&) = delete;

  Work& work() { return *work_; }
  const Cluster& cluster() const { return *cluster_; }

  // Whether it is done by then; none: waits until it is. Throws nothing of the call's.
  bool wait_until(std::optional<Deadline> deadline);
  // Of one that is done: throws what the call threw.
  void check();
  // What Python raised in the call, once it was heard of: its traceback may lead back to the work.
  const std::optional<PythonError>& error() const { return error_; }

 private:
  bool is_done_before_going() noexcept;

  std::optional<Work> work_;
  std::optional<Cluster> cluster_;
  std::optional<PythonError> error_;
  bool is_left_ = false;  // to itself
};

// With the GIL.
std::shared_ptr<PendingWork> pending(Work work, const Cluster& cluster);

// Whether one is not done yet; with the GIL.
bool are_works_under_way() noexcept;

// Waits some seconds for all that are under way, then closes their clusters, which ends them.
void finish_works();

}  // namespace onesum::python
