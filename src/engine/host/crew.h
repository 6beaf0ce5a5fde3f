// The threads of the host engine: a caller's segments, shared with helpers.
//
// Segments are claimed one at a time: by the caller from the front, by helpers from the back, so that
// repeated calls on the same memory find much of it in the same core's cache. When nothing is left to claim,
// the caller waits only for segments that a helper has claimed: a helper that sleeps, starts late, lost its
// core or does not exist (after fork) costs nothing. One caller at a time has the helpers; others work alone.
#pragma once

#include <atomic>
#include <chrono>
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

  // Calls task(context, i) once for every i in [0, count) and returns when all calls have. From any thread,
  // also from inside a task.
  void run(std::uint32_t count, SegmentTask task, void* context) noexcept;

  unsigned threads() const noexcept { return threads_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    SegmentTask task = nullptr;
    void* context = nullptr;
  };
  enum class End : bool { kFront, kBack };

  void hire() noexcept;
  void publish(const Job& job, std::uint32_t begin, std::uint32_t count) noexcept;
  std::uint32_t work(End end) noexcept;
  bool claim(End end, std::uint32_t& segment) noexcept;
  std::uint32_t unclaimed() const noexcept;
  void await(std::uint32_t finished) noexcept;
  bool has_sleepers() const noexcept;
  void help() noexcept;
  bool linger() noexcept;
  void sleep() noexcept;

  const unsigned threads_;
  const bool may_spin_;
  std::vector<std::thread> helpers_;  // changed by the owner of busy_ only
  pid_t hired_by_ = 0;                // the process that the helpers live in

  // Who owns the helpers. Acquired by exchange, so that the owner sees the previous owner's job as ended;
  // released by a release store.
  alignas(64) std::atomic<bool> busy_{false};

  // Of jobs that have ended; used by the owner of busy_ only.
  Clock::time_point last_end_;
  std::uint32_t finished_before_ = 0;  // by helpers

  // The segments nobody has claimed, [begin, end): begin in the lower half, end in the upper. A claim is a
  // compare-and-swap that takes one off. Publishing is a release store and a claim acquires, so a claimer
  // sees job_; that another job may have come in between with the same range left is harmless, as job_ is
  // read after the claim and cannot change before the claimed segment is finished.
  alignas(64) std::atomic<std::uint64_t> range_{0};

  // Written by the owner of busy_ while nothing can be claimed; read only after a successful claim. In one
  // line with range_: it travels to a helper together with the news.
  Job job_;

  // Segments that helpers have finished, of all jobs; it wraps. Each helper adds its own with release, the
  // caller's load acquires: results are visible when it returns. Never set back: a caller would have to wait
  // for the line before it could publish.
  alignas(64) std::atomic<std::uint32_t> finished_{0};

  // Rings for every job and at the end; helpers sleep on it. Sequentially consistent together with sleepers_:
  // either the one who rings sees the sleeper, or the sleeper sees the bell.
  alignas(64) std::atomic<std::uint32_t> bell_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> closing_{false};  // relaxed: ordered by the bell
};

}  // namespace onesum::engine::host
