#include "cli/bench_bound.h"

#include <sched.h>

namespace onesum::cli {
namespace {

// Spins for a while, then lets others have the core: with fewer cores than threads a spinning one would hold
// up the one it waits for.
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
  whole_.sources =
      kind == BoundKind::kInPlace ? workspace.result_arenas().data() : workspace.value_arenas().data();
  whole_.count = workspace.workload().devices;
  whole_.end = workspace.arena_bytes();
}

void Bound::call(std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) team_.run(kernel_, whole_);
}

FastestBound::FastestBound(const Workspace& workspace, BoundKind kind, std::size_t threads) {
  const bool in_place = kind == BoundKind::kInPlace;
  if (in_place && workspace.workload().devices == 1) return;
  for (const Stores stores : {Stores::kPlain, Stores::kStreaming}) {
    if (in_place && stores == Stores::kStreaming) continue;  // lines just read are in the caches
    ways_.push_back({std::make_unique<Bound>(workspace, kind, 1, stores), {}});
    if (threads > 1) ways_.push_back({std::make_unique<Bound>(workspace, kind, threads, stores), {}});
  }
}

void FastestBound::measure_round(const Budget& budget) {
  const Budget share{budget.seconds / static_cast<double>(ways_.size()), budget.rounds};
  Series fastest;
  for (Way& way : ways_) {
    cli::measure_round(*way.bound, share, way.times);
    const Series latest{{way.times.rounds.back()}, way.times.group};
    if (fastest.rounds.empty() || latest.median() < fastest.median()) fastest = latest;
  }
  times_.rounds.push_back(fastest.rounds.front());
}

}  // namespace onesum::cli
