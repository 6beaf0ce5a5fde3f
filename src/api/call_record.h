// What the last call on an object did.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include <onesum/cross_device_ops.h>

#include "exec/executor.h"
#include "plan/plan.h"

namespace onesum::api {

class CallRecord {
 public:
  // By one thread at a time. Costs a few nanoseconds, unless the plan is another one than the last call's.
  void add(const std::shared_ptr<const plan::Plan>& plan, std::size_t tensors, std::size_t bytes,
           std::chrono::nanoseconds time, const exec::Waiting& waiting = {});

  // By any thread at any time.
  CallReport report() const;

 private:
  // A sequence lock: version_ is odd while the numbers are being written, and a reader that saw the same even
  // one before and after has read the numbers of one call. The numbers are stored with release, so none is
  // seen before the odd version, and loaded with acquire, so the second look at the version comes last.
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::size_t> tensors_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::int64_t> nanoseconds_{0};
  std::atomic<std::int64_t> waited_nanoseconds_{0};
  std::atomic<int> waited_for_{-1};

  mutable std::mutex mutex_;  // of plan_, which seldom changes
  std::shared_ptr<const plan::Plan> plan_;
};

}  // namespace onesum::api
