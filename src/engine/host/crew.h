// The threads of the host engine: a caller's segments, shared with helpers.
//
// Segments are claimed one at a time from a counter. The caller claims like everyone else and, when nothing is left
// to claim, waits only for segments that a helper has claimed: a helper that sleeps, starts late, lost its core or
// does not exist (after fork) costs nothing. One caller at a time has the helpers; others work alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "engine/device.h"

namespace onesum::engine::host {

class Crew {
 public:
  // `threads` counts the caller; `cores` says how many the process has, for helpers may spin only if all fit.
  Crew(unsigned threads, unsigned cores);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls task(context, i) once for every i in [0, count) and returns when all calls have. From any thread, also
  // from inside a task.
  void run(std::uint32_t count, SegmentTask task, void* context) noexcept;

  unsigned threads() const noexcept { return threads_; }

 private:
  struct Job {
    SegmentTask task = nullptr;
    void* context = nullptr;
    std::uint32_t count = 0;
  };

  void hire() noexcept;
  void publish(std::uint32_t count) noexcept;
  std::uint32_t work() noexcept;
  bool claim(std::uint32_t& remaining) noexcept;
  void await(std::uint32_t finished) noexcept;
  void wake(int sleepers) noexcept;
  void help() noexcept;
  bool linger() noexcept;
  void sleep() noexcept;

  const unsigned threads_;
  const bool may_spin_;
  std::vector<std::thread> helpers_;  // changed by the owner of busy_ only
  pid_t hired_by_ = 0;                // the process that the helpers live in

  // Who owns the helpers. Acquired by exchange, so that the owner sees the previous owner's job as ended; released
  // by a release store.
  alignas(64) std::atomic<bool> busy_{false};

  // Written by the owner of busy_ while nothing can be claimed; read only after a successful claim.
  Job job_;

  // Segments nobody has claimed. A claim is a compare-and-swap n -> n - 1 with n > 0. Publishing is a release store
  // and a claim acquires, so a claimer sees job_; that another job with the same n may have come in between is
  // harmless, as job_ is read after the claim and cannot change before the claimed segment is finished.
  alignas(64) std::atomic<std::uint32_t> unclaimed_{0};

  // Segments that helpers have finished. Each helper adds its own with release, the caller's load acquires: results
  // are visible when it returns.
  alignas(64) std::atomic<std::uint32_t> finished_{0};

  // Rings for every job and at the end; helpers sleep on it. Sequentially consistent together with sleepers_: either
  // the one who rings sees the sleeper, or the sleeper sees the bell.
  alignas(64) std::atomic<std::uint32_t> bell_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> closing_{false};  // relaxed: ordered by the bell
};

}  // namespace onesum::engine::host
