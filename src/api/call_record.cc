#include "api/call_record.h"

namespace onesum::api {

void CallRecord::add(const std::shared_ptr<const plan::Plan>& plan, std::size_t tensors, std::size_t bytes,
                     std::chrono::nanoseconds time, const exec::Waiting& waiting) {
  if (plan_ != plan) {  // only this thread changes it
    const std::lock_guard lock(mutex_);
    plan_ = plan;
  }
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  tensors_.store(tensors, std::memory_order_release);
  bytes_.store(bytes, std::memory_order_release);
  nanoseconds_.store(time.count(), std::memory_order_release);
  waited_nanoseconds_.store(waiting.time.count(), std::memory_order_release);
  waited_for_.store(waiting.longest_for, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

CallReport CallRecord::report() const {
  CallReport report;
  for (;;) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    report.number = number_.load(std::memory_order_acquire);
    report.tensors = tensors_.load(std::memory_order_acquire);
    report.bytes = bytes_.load(std::memory_order_acquire);
    report.time = std::chrono::nanoseconds(nanoseconds_.load(std::memory_order_acquire));
    report.waited = std::chrono::nanoseconds(waited_nanoseconds_.load(std::memory_order_acquire));
    report.waited_for = waited_for_.load(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
  }
  const std::lock_guard lock(mutex_);
  if (plan_) report.algorithm = plan_->algorithm;
  return report;
}

}  // namespace onesum::api
