// What the calling thread is doing for a MirroredStrategy: running one of its replicas, merging them, or
// holding its scope open. Outside of a replica a thread is in cross-replica context, where reductions are at
// home.
#pragma once

#include <string_view>

namespace onesum {
class MirroredStrategy;
class ReplicaContext;
}  // namespace onesum

namespace onesum::api {

class ReplicaRun;

struct ThreadContext {
  const ReplicaContext* replica = nullptr;  // null in cross-replica context
  ReplicaRun* run = nullptr;                // the run() that this thread works for, also while it merges
  const MirroredStrategy* scope = nullptr;  // the strategy that new variables are mirrored by
};

// One per thread. Use the functions below and ContextGuard.
// Addressed without a call of the loader (base/interrupt.cc).
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadContext thread_context;

// The replica that this thread runs; null in cross-replica context. One load.
inline const ReplicaContext* current_replica() noexcept { return thread_context.replica; }

// Replaces the thread's context for the life of the guard.
class ContextGuard {
 public:
  explicit ContextGuard(ThreadContext context) noexcept : before_(thread_context) {
    thread_context = context;
  }
  ~ContextGuard() { thread_context = before_; }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  ThreadContext before_;
};

// Throws the Error of require_cross_replica_context.
[[noreturn]] void refuse_replica_context(std::string_view what);

// Throws invalid_argument if this thread runs a replica, naming `what` was called ("CrossDeviceOps::reduce"),
// the replica, and what to use there instead.
inline void require_cross_replica_context(std::string_view what) {
  if (current_replica() != nullptr) [[unlikely]] {
    refuse_replica_context(what);
  }
}

}  // namespace onesum::api
