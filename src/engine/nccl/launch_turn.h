// Whose collectives enter the queues of this process's GPUs. Communicators take turns: of two that share
// GPUs and are launched at once, each might have one that the other waits for.
#pragma once

#include <atomic>

namespace onesum::engine::nccl {

class LaunchTurn {
 public:
  // Whether it is `who`'s turn now.
  bool take(const void* who) noexcept {
    const void* owner = nullptr;
    return owner_.compare_exchange_strong(owner, who, std::memory_order_acquire) || owner == who;
  }
  // If it was.
  void leave(const void* who) noexcept {
    owner_.compare_exchange_strong(who, nullptr, std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  // Acquire and release: what one has launched comes before what the next one launches.
  std::atomic<const void*> owner_ = nullptr;
};

}  // namespace onesum::engine::nccl
