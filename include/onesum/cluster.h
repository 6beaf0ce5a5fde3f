// Who takes part in calls.
//
// Calls on a cluster are one sequence: a call starts when those before it are done. Copying a Cluster copies
// the handle. Today a cluster is the devices of this process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <onesum/device.h>
#include <onesum/export.h>

namespace onesum {

class ONESUM_API Cluster {
 public:
  // The named devices of this process; values and destinations on other devices are refused. None: every CPU
  // device of this process ("CPU:0", "CPU:1", … as many as a caller names).
  static Cluster local(const std::vector<std::string>& devices = {});

  int rank() const noexcept;                         // of this worker
  int size() const noexcept;                         // workers
  std::span<const Device> devices() const noexcept;  // as given to local(), completed

  struct State;  // internal
  State& state() const noexcept { return *state_; }

 private:
  explicit Cluster(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace onesum
