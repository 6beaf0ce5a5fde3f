// Who takes part in calls.
//
// Calls on a cluster are one sequence: a call starts when those before it are done. Copying a Cluster copies
// the handle. Today all workers of a cluster are in this process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/device.h>
#include <onesum/export.h>

namespace onesum {

class ONESUM_API Cluster {
 public:
  // The named devices of this process; values and destinations on other devices are refused. None: every CPU
  // device of this process ("CPU:0", "CPU:1", … as many as a caller names).
  static Cluster local(const std::vector<std::string>& devices = {});

  // Several workers inside this process: "/job:worker/task:0", … in rank order, all different, each with the
  // devices TYPE:0 to TYPE:devices_per_worker-1; a worker's CPU:0 is always there. Values may be on any of
  // them. A partial device string is worker 0's (a destination string without a task: every worker's).
  static Cluster embedded(const std::vector<std::string>& worker_devices, int devices_per_worker,
                          std::string_view type = "CPU");

  int rank() const noexcept;  // of this worker; 0 where all of them are in this process
  int size() const noexcept;  // workers
  // Complete: as given to local(), or those of all embedded workers, worker by worker.
  std::span<const Device> devices() const noexcept;

  struct State;  // internal
  State& state() const noexcept { return *state_; }

 private:
  explicit Cluster(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace onesum
