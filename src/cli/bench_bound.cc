#include "cli/bench_bound.h"

#include <algorithm>

#include "cli/bench_spin.h"

namespace onesum::cli {
namespace {

// Each arena in as many pieces as there are processes, as far as its lines go; what does not divide is left
// out.
std::vector<std::byte*> pieces_of(std::span<std::byte* const> arenas, std::size_t pieces, std::size_t bytes) {
  std::vector<std::byte*> starts;
  for (std::byte* arena : arenas) {
    for (std::size_t p = 0; p < pieces; ++p) starts.push_back(arena + p * bytes);
  }
  return starts;
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

Bound::Bound(const Workspace& workspace, BoundKind kind, std::size_t threads, Stores stores, Meeting* meeting)
    : team_(threads), meeting_(meeting) {
  const std::size_t lines = workspace.arena_bytes() / kLine;
  const std::size_t pieces = std::clamp<std::size_t>(lines, 1, workspace.workload().processes);
  const std::size_t bytes = lines / pieces * kLine;
  const bool in_place = kind == BoundKind::kInPlace;
  destinations_ = pieces_of(workspace.result_arenas(), pieces, bytes);
  sources_ = in_place ? destinations_ : pieces_of(workspace.value_arenas(), pieces, bytes);
  whole_.destinations = destinations_.data();
  whole_.sources = sources_.data();
  whole_.count = sources_.size();
  whole_.end = bytes;
  kernel_ = sum_kernel(whole_.count, in_place, workspace.workload().dtype == DType::kFloat32, stores);
}

void Bound::call(std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    if (meeting_ != nullptr) meeting_->meet();
    team_.run(kernel_, whole_);
  }
}

FastestBound::FastestBound(const Workspace& workspace, BoundKind kind, std::size_t threads,
                           Meeting* meeting) {
  const bool in_place = kind == BoundKind::kInPlace;
  if (in_place && workspace.workload().replicas() == 1) return;
  for (const Stores stores : {Stores::kPlain, Stores::kStreaming}) {
    if (in_place && stores == Stores::kStreaming) continue;  // lines just read are in the caches
    ways_.push_back({std::make_unique<Bound>(workspace, kind, 1, stores, meeting), {}});
    if (threads > 1)
      ways_.push_back({std::make_unique<Bound>(workspace, kind, threads, stores, meeting), {}});
  }
}

void FastestBound::measure_round(const Budget& budget, Lockstep& lockstep) {
  Budget share = budget;
  share.seconds /= static_cast<double>(ways_.size());
  Series fastest;
  for (Way& way : ways_) {
    cli::measure_round(*way.bound, share, way.times, lockstep);
    const Series latest{{way.times.rounds.back()}, way.times.group};
    if (fastest.rounds.empty() || latest.median() < fastest.median()) fastest = latest;
  }
  times_.rounds.push_back(fastest.rounds.front());
}

}  // namespace onesum::cli
