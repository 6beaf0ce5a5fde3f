// One MirroredStrategy::run: where its replicas meet, and how it ends.
//
// Replicas meet in calls that all of them make. The last one to arrive carries the call out for all, in
// cross-replica context, while the others wait. The first replica that can no longer come fails the run:
// whoever waits, or arrives later, gets aborted.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/replica_call.h"

namespace onesum::api {

class ReplicaRun {
 public:
  // `enclosing`: the run whose merge_call makes this one, if any.
  ReplicaRun(MirroredStrategy& strategy, const ReplicaRun* enclosing);

  // Whether this run, or one that it is made inside, belongs to `strategy`.
  bool is_inside(const MirroredStrategy& strategy) const noexcept;

  // Runs one replica to its end on the calling thread; what it throws is kept.
  void run_replica(ReplicaContext& replica, const std::function<void(ReplicaContext&)>& fn) noexcept;

  // Called by a replica: returns when all replicas have made the call and it is carried out.
  void meet(int replica, ReplicaCall& call);

  // When all replicas have ended: throws what the lowest one threw that was not merely aborted, else what the
  // lowest one threw, if any did.
  void rethrow() const;

 private:
  struct Replica {
    ReplicaCall* call = nullptr;  // that it is in
    std::size_t num_calls = 0;    // made, including that one
    bool has_ended = false;
    bool was_aborted = false;
    std::string end;           // "returned", "threw std::runtime_error: …"
    std::exception_ptr error;  // what it threw
  };
  // Why the run cannot go on. A mismatch is told to all in the same words, the rest beside what each one
  // waits in.
  struct Failure {
    std::string text;
    bool is_mismatch = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void end(int replica, std::string how, std::exception_ptr error);
  bool has_arrived_all() const noexcept { return num_arrived_ == replicas_.size(); }
  void carry_out(Lock& lock);
  void wait(Lock& lock, int replica, const ReplicaCall& call);
  void fail(std::string text, bool is_mismatch = false);
  void fail_if_one_ended();
  void fail_if_calls_differ();
  [[noreturn]] void throw_aborted(int replica, const ReplicaCall& call);
  std::string missing_replicas() const;

  MirroredStrategy* strategy_;
  const ReplicaRun* enclosing_;

  std::mutex mutex_;  // guards all below, and the calls of replicas that wait
  std::condition_variable changed_;
  std::vector<Replica> replicas_;
  std::size_t num_arrived_ = 0;
  std::optional<Failure> failure_;
  std::exception_ptr last_error_;  // of a call: kept so that its last owner is not an arbitrary replica
};

}  // namespace onesum::api
