#include "cli/bench_bound.h"

#include <sched.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace onesum::cli {
namespace {

// Spins for a while, then lets others have the core: with fewer cores than threads a spinning one would hold up the
// one it waits for.
template <class Condition>
void spin_until(Condition is_met) {
  constexpr int kSpins = 2000;
  for (int spins = 0; !is_met(); ++spins) {
    if (spins < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }
}

// The shortest of a few calls, in seconds.
double trial(Bound& bound) {
  constexpr double kEnough = 2e-3;
  bound.begin_round();
  bound.call(1);
  double shortest = std::numeric_limits<double>::infinity();
  double total = 0;
  for (int calls = 0; calls < 2 || total < kEnough; ++calls) {
    const auto start = now();
    bound.call(1);
    const double time = std::chrono::duration<double>(now() - start).count();
    shortest = std::min(shortest, time);
    total += time;
  }
  bound.end_round();
  return shortest;
}

}  // namespace

void Team::begin() {
  if (!helpers_.empty()) return;
  round_.store(0, std::memory_order_relaxed);  // the threads that will read it do not exist yet
  for (std::size_t part = 1; part < threads_; ++part) helpers_.emplace_back([this, part] { help(part); });
}

void Team::end() {
  kernel_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
}

void Team::run(SumKernel kernel, const SumArgs& whole) {
  kernel_ = kernel;
  whole_ = whole;
  done_.store(0, std::memory_order_relaxed);  // ordered before the helpers' increments by round_
  round_.fetch_add(1, std::memory_order_release);
  do_part(0);
  spin_until([this] { return done_.load(std::memory_order_acquire) == helpers_.size(); });
}

void Team::help(std::size_t part) {
  for (std::size_t seen = 0;; ++seen) {
    spin_until([&] { return round_.load(std::memory_order_acquire) != seen; });
    if (kernel_ == nullptr) return;
    do_part(part);
    done_.fetch_add(1, std::memory_order_release);
  }
}

void Team::do_part(std::size_t part) {
  const std::size_t lines = whole_.end / kLine;
  SumArgs mine = whole_;
  mine.begin = lines * part / threads_ * kLine;
  mine.end = lines * (part + 1) / threads_ * kLine;
  if (mine.begin < mine.end) kernel_(mine);
}

Bound::Bound(const Workspace& workspace, BoundKind kind, std::size_t threads, Stores stores)
    : team_(threads),
      kernel_(sum_kernel(workspace.workload().devices, kind == BoundKind::kInPlace,
                         workspace.workload().dtype == DType::kFloat32, stores)) {
  whole_.destinations = workspace.result_arenas().data();
  whole_.sources = kind == BoundKind::kInPlace ? workspace.result_arenas().data() : workspace.value_arenas().data();
  whole_.count = workspace.workload().devices;
  whole_.end = workspace.arena_bytes();
}

void Bound::call(std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) team_.run(kernel_, whole_);
}

std::unique_ptr<Bound> fastest_bound(const Workspace& workspace, BoundKind kind, std::size_t threads) {
  if (kind == BoundKind::kInPlace && workspace.workload().devices == 1) return nullptr;
  std::unique_ptr<Bound> best;
  double best_time = 0;
  for (const Stores stores : {Stores::kPlain, Stores::kStreaming}) {
    if (kind == BoundKind::kInPlace && stores == Stores::kStreaming) continue;  // lines just read are in the caches
    for (const std::size_t count : {std::size_t{1}, threads}) {
      auto candidate = std::make_unique<Bound>(workspace, kind, count, stores);
      const double time = trial(*candidate);
      if (!best || time < best_time) {
        best = std::move(candidate);
        best_time = time;
      }
      if (threads == 1) break;
    }
  }
  return best;
}

}  // namespace onesum::cli
