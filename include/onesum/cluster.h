// Who takes part in calls.
//
// Calls on a cluster are one sequence: a call starts when those before it are done. Copying a Cluster copies
// the handle. Its workers are in this process, or processes of their own that make the same calls in the same
// order, each with the replicas on its own devices.
//
// The first failure of a worker ends the group: every call on it, and every later one, throws an Error that
// names the worker and the call, the same on all workers. Nothing waits for ever. Those who are left go on
// with shrink().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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

  // The workers that the launcher of this process has started, found in the environment (docs/
  // configuration.md): `onesum run`, TF_CONFIG, torchrun, Slurm, the MPIs; else this process alone. Waits for
  // all workers; throws deadline_exceeded naming those that did not come, and what else can go wrong when
  // they meet. A process joins once; called again, it gives the same cluster.
  static Cluster from_environment();

  // Returns when all workers have called it, and all earlier calls on this cluster are done. Throws
  // deadline_exceeded naming who did not come before the timeout (absent: 30 minutes).
  void barrier(std::optional<std::chrono::milliseconds> timeout = {});

  // Those who are left of the group, as a new cluster with ranks 0, 1, …, in the old order; the old one is
  // over. Every worker that lives must call it, and waits for the others until the timeout (absent: 30
  // minutes); those that have not come by then are left behind. If nobody has failed, it gives the same
  // workers a new group, also after calls that differed. Throws
  //   aborted            the others went on without this worker ("expelled")
  //   unavailable        those who can reach each other are no majority of the group: the others may live.
  //                      Workers whose death is certain do not count; half of them will do with the lowest
  //                      rank
  //   deadline_exceeded  who did not come; it may be called again
  // Whatever goes wrong after the others have agreed on this worker makes it leave them.
  Cluster shrink(std::optional<std::chrono::milliseconds> timeout = {});

  // A call may have succeeded on some workers and failed on others. How many calls this worker has completed
  // on this cluster; and, after shrink(), how many of those on the old one all workers of this cluster have.
  // 0 where all workers are in this process.
  std::uint64_t completed_calls() const noexcept;
  std::uint64_t completed_by_all() const noexcept;

  // The same workers once more, with a sequence of calls of its own. All of them call it.
  Cluster duplicate();

  // A cluster of some of the workers; the first of the ranks becomes 0. All workers of this cluster call it,
  // each with the ranks of the cluster that it will be in, the same for all of its members; one that is to
  // be in none passes its own rank. Where all workers are in this process, any of them.
  Cluster split(std::span<const int> ranks);

  // The same without the others: only those of `ranks` call it, in whatever order with their other calls, and
  // wait for each other until the timeout (absent: 30 minutes). `name` tells groups of the same workers apart
  // that they make at the same time; they make those of one name in the same order. The first of the ranks
  // becomes 0. Throws deadline_exceeded naming who did not come.
  Cluster group(std::span<const int> ranks, std::string_view name,
                std::optional<std::chrono::milliseconds> timeout = {});

  // Tells the other workers that this one has left. Calls on the cluster are refused from then on. Never
  // waits long; the last handle does it too.
  void close() noexcept;

  int rank() const noexcept;  // of this worker; 0 where all of them are in this process
  int size() const noexcept;  // workers
  std::span<const Device> workers() const noexcept;  // job, replica and task of each rank
  // Complete: as given to local(), or those of all embedded workers, worker by worker.
  std::span<const Device> devices() const noexcept;

  struct State;  // internal
  State& state() const noexcept { return *state_; }

 private:
  explicit Cluster(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace onesum
