// A stream: a thread that runs what was enqueued, one after the other, each a random moment late.
//
// The thread keeps its stream alive until everything ran, as CUDA does with a stream that was destroyed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulated_gpu/clock.h"

namespace onesum::emulated {

class Stream {
 public:
  struct Traits {
    std::uint32_t number;
    int device;
    bool is_blocking;  // waits for the legacy default stream, and is waited for
    int priority;
  };
  static std::shared_ptr<Stream> start(const Traits& traits);

  const Traits& traits() const { return traits_; }

  // The caller counts: `position` is one more than at the last call.
  void push(std::function<void()> work);
  bool is_done(std::uint64_t position) const;
  void wait(std::uint64_t position) const;
  // Nothing is pushed any more.
  void close();

  // Guarded by the world's lock.
  Clock clock;                 // what comes before everything that is enqueued next
  std::uint64_t enqueued = 0;  // the position of the last operation
  // By whom, for each collective that NCCL may not have enqueued yet.
  std::vector<std::thread::id> launching;
  std::uint64_t fenced_with = 0;  // up to where the default stream's operations come before

 private:
  explicit Stream(const Traits& traits) : traits_(traits) {}
  void run();

  const Traits traits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t done_ = 0;
  bool is_closed_ = false;
};

}  // namespace onesum::emulated
