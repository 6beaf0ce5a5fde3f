// Works as Python has them: with the cluster they run on, and known to the end of the interpreter.
#pragma once

#include <memory>
#include <optional>

#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>

#include "python_error.h"

namespace onesum::python {

// Going waits for the work, without the GIL.
class PendingWork {
 public:
  PendingWork(Work work, Cluster cluster);
  ~PendingWork();
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(const PendingWork&) = delete;

  Work& work() { return *work_; }
  const Cluster& cluster() const { return *cluster_; }

  // Waits, without the GIL; throws what the call threw.
  void wait();
  // What Python raised in the call, once it was heard of: its traceback may lead back to the work.
  const std::optional<PythonError>& error() const { return error_; }

 private:
  std::optional<Work> work_;
  std::optional<Cluster> cluster_;
  std::optional<PythonError> error_;
};

// With the GIL.
std::shared_ptr<PendingWork> pending(Work work, const Cluster& cluster);

// Whether one is not done yet; with the GIL.
bool are_works_under_way() noexcept;

// Waits some seconds for all that are under way, then closes their clusters, which ends them.
void finish_works();

}  // namespace onesum::python
