#include "planner/automatic.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/amounts.h"
#include "base/element.h"
#include "collective/native.h"
#include "plan/crossing.h"
#include "plan/sizes.h"

namespace onesum::planner {
namespace {

using collective::Algorithm;
using collective::Scheme;

// Everyone sends to everyone: beyond this many workers the plan itself is too large.
constexpr std::size_t kMostWorkersForDirect = 256;
// Where everyone sends all it has to everyone: who can still look at so many messages at once, and what a
// worker may send to all others together, where they share a machine and where they do not.
constexpr std::size_t kMostWorkersForExchange = 16;
constexpr std::size_t kMostBytesForExchange = std::size_t{1} << 20;
constexpr std::size_t kMostBytesAcrossMachines = std::size_t{1} << 16;
// On one machine waiting for each other is what costs, which `exchange` does once, and what it writes it
// writes once for all. Up to these many bytes, and where there are not many more to add up, it was the
// fastest (docs/performance.md), whatever is predicted. Not where it sends or adds more than others: partial
// sums of several replicas, and 16-bit floats, which everyone adds in 32 bits.
constexpr std::size_t kMostBytesToWaitOnce = std::size_t{16} << 10;
constexpr std::size_t kMostBytesToAddUp = std::size_t{64} << 10;  // of all workers
// Two workers send no more by it than by others. Where they share memory it is the fastest at every size
// where what one writes is far from the other's core, and at most a little slower where it is near. By the
// network it was up to these many bytes.
constexpr std::size_t kMostBytesOfTwoByNetwork = std::size_t{2} << 20;
// Above that `pool` was, of so many workers, up to the bytes that a round of it takes: many messages cost
// more than to write what nobody but one reads where everybody can.
constexpr std::size_t kLeastWorkersToPool = 8;
constexpr std::size_t kMostBytesToPool = std::size_t{256} << 10;
// By the network every message costs both ends system calls, and nothing is written once for all: of more
// than two workers on one machine `doubling`, which has the fewest messages, was the fastest up to these
// many, and above them `rechd`, which has the fewest of those that carry no more than they must. It was not
// measured for workers whose number is no power of two, of which it makes some wait for others.
constexpr std::size_t kMostBytesToDouble = std::size_t{16} << 10;

std::size_t count_workers(const collective::Topology& topology, const collective::Task& task) {
  std::set<std::int32_t> ranks;
  for (const collective::Source& replica : task.replicas) ranks.insert(topology.rank_of(replica.device));
  return ranks.size();
}

// Whether some of the task's workers share a machine, and not all of them do.
bool share_machines(const collective::Topology& topology, const collective::Task& task) {
  std::map<std::int32_t, std::set<std::int32_t>> ranks;  // by machine
  std::size_t most = 0;
  for (const collective::Source& replica : task.replicas) {
    const std::int32_t rank = topology.rank_of(replica.device);
    std::set<std::int32_t>& mates = ranks[topology.machine_of(rank)];
    mates.insert(rank);
    most = std::max(most, mates.size());
  }
  return ranks.size() > 1 && most > 1;
}

// In one shard: rounds of a call overlap by themselves.
Scheme over_workers(Algorithm across, bool fast) {
  Scheme scheme;
  scheme.inside = Algorithm::kNccl;
  scheme.across = across;
  scheme.fast = fast;
  return scheme;
}

// Nobody promises an order for what the GPUs' library adds: canonical sums are formed without it. All
// algorithms of ours inside a worker are one and the same.
std::vector<Scheme> without_native(std::vector<Scheme> schemes) {
  for (Scheme& scheme : schemes) {
    if (scheme.inside == Algorithm::kNccl) scheme.inside = Algorithm::kDirect;
    if (scheme.across == Algorithm::kNccl) scheme.across = Algorithm::kDirect;
  }
  return schemes;
}

// The most that one machine sends to others, of a tensor so long that rounding does not show.
std::uint64_t most_sent(Algorithm across, const collective::Topology& topology, const collective::Task& task,
                        bool fast) {
  constexpr std::size_t kElements = std::size_t{1} << 30;
  Scheme scheme = over_workers(across, fast);
  scheme.inside = Algorithm::kDirect;  // messages are the same where a native sum takes its place
  const plan::Plan plan = collective::all_reduce(topology, task, scheme);
  return std::ranges::max(plan::sent_between_machines(plan, {{kElements}, {{}}}, topology.machines), {},
                          &plan::LinkCost::bytes)
      .bytes;
}

// Whether least crosses the network where machines add up first. It does not where a machine of few workers
// would own as much as one whose many are on many branches of the tree.
bool gains_by_machines(const collective::Topology& topology, const collective::Task& task, bool fast) {
  return share_machines(topology, task) && most_sent(Algorithm::kMachines, topology, task, fast) <=
                                               most_sent(Algorithm::kDirect, topology, task, fast);
}

bool is_spread(const collective::Topology& topology) {
  return !topology.machines.empty() && std::ranges::max(topology.machines) > 0;
}

bool can_exchange(const collective::Topology& topology, std::size_t workers, std::size_t bytes) {
  return workers <= kMostWorkersForExchange &&
         bytes * (workers - 1) <= (is_spread(topology) ? kMostBytesAcrossMachines : kMostBytesForExchange);
}

// What was measured to be fastest on CPUs, if it was.
std::optional<Algorithm> known_best(const collective::Topology& topology, const collective::Task& task,
                                    std::size_t workers, std::size_t bytes) {
  const bool has_one_each = task.replicas.size() == workers;
  const bool has_gpus = std::ranges::any_of(
      task.replicas, [&](const collective::Source& replica) { return topology.is_gpu(replica.device); });
  if (!has_one_each || has_gpus || workers > kMostWorkersForExchange || is_spread(topology))
    return std::nullopt;
  const bool widens = task.replicas.front().element != task.accumulator;
  if (workers == 2) {
    const bool is_best = !topology.by_network || (!widens && bytes <= kMostBytesOfTwoByNetwork);
    return is_best ? std::optional(Algorithm::kExchange) : std::nullopt;
  }
  if (topology.by_network) {
    if (widens) return std::nullopt;
    if (bytes <= kMostBytesToDouble) return Algorithm::kDoubling;
    return std::has_single_bit(workers) ? std::optional(Algorithm::kHalvingDoubling) : std::nullopt;
  }
  if (bytes <= kMostBytesToWaitOnce && bytes * workers <= kMostBytesToAddUp) {
    return widens ? std::nullopt : std::optional(Algorithm::kExchange);
  }
  const bool can_pool = workers >= kLeastWorkersToPool && bytes <= kMostBytesToPool;
  return can_pool ? std::optional(Algorithm::kPool) : std::nullopt;
}

std::string_view why_known_best(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kExchange:
      return "wait for each other once, which is fastest at this size";
    case Algorithm::kPool:
      return "send few messages, each to all of them, which is fastest at this size";
    default:
      return "send the fewest messages, which is fastest over TCP at this size";
  }
}

bool is_better(const Candidate& one, const Candidate& other) {
  if (one.is_known_best != other.is_known_best) return one.is_known_best;
  return one.seconds < other.seconds;
}

// Which algorithms across workers.
std::vector<Algorithm> algorithms_for(const collective::Topology& topology, const collective::Task& task,
                                      std::size_t workers, std::size_t bytes,
                                      const CommunicationOptions& options) {
  const bool fast = options.numerics == Numerics::kFast;
  if (fast && options.implementation == Implementation::kRing) return {Algorithm::kRing};
  const bool is_small = workers <= kMostWorkersForDirect;
  std::vector<Algorithm> algorithms;
  if (is_small && gains_by_machines(topology, task, fast)) {
    algorithms = {Algorithm::kMachines};
  } else {
    algorithms = {Algorithm::kHalvingDoubling};
    if (is_small) algorithms.push_back(Algorithm::kDirect);
    if (fast) algorithms.push_back(Algorithm::kRing);
  }
  if (can_exchange(topology, workers, bytes)) algorithms.push_back(Algorithm::kExchange);
  const std::optional<Algorithm> best = known_best(topology, task, workers, bytes);
  if (best && std::ranges::find(algorithms, *best) == algorithms.end()) algorithms.push_back(*best);
  return algorithms;
}

std::vector<Scheme> schemes_for(const collective::Topology& topology, const collective::Task& task,
                                std::size_t bytes, const CommunicationOptions& options) {
  const bool fast = options.numerics == Numerics::kFast;
  const std::size_t workers = count_workers(topology, task);
  if (workers == 1) return {over_workers(Algorithm::kNccl, fast)};
  if (options.implementation == Implementation::kNccl) return {over_workers(Algorithm::kNccl, fast)};
  std::vector<Scheme> schemes;
  for (const Algorithm algorithm : algorithms_for(topology, task, workers, bytes, options)) {
    schemes.push_back(over_workers(algorithm, fast));
  }
  return schemes;
}

}  // namespace

std::vector<Candidate> candidates(const collective::Topology& topology, const collective::Task& task,
                                  std::size_t elements, const CommunicationOptions& options,
                                  const plan::CostConstants& constants) {
  const std::size_t bytes = elements * size_of(task.replicas.front().element);
  std::vector<Candidate> ranked;
  std::vector<Scheme> schemes = schemes_for(topology, task, bytes, options);
  if (collective::can_run_natively(topology, task)) {
    const bool is_open =
        options.implementation == Implementation::kAuto && schemes.front().across != Algorithm::kNccl;
    if (options.numerics != Numerics::kFast) {
      schemes = without_native(std::move(schemes));
    } else if (is_open) {
      schemes.push_back(over_workers(Algorithm::kNccl, true));
    }
  }
  for (const Scheme& scheme : schemes) {
    const plan::Plan plan = collective::all_reduce(topology, task, scheme);
    const plan::Sizes sizes{{elements}, {{}}};
    const bool is_known_best =
        known_best(topology, task, count_workers(topology, task), bytes) == scheme.across;
    const Candidate candidate{scheme, plan::cost(plan, sizes, constants).seconds, is_known_best};
    ranked.insert(std::ranges::upper_bound(ranked, candidate, is_better), candidate);
  }
  return ranked;
}

std::string reason_of(const std::vector<Candidate>& ranked) {
  const auto in_words = [](const Candidate& candidate) {
    return fmt::format("{} is predicted to take {}", to_string(candidate.scheme),
                       format_time(candidate.seconds));
  };
  std::string reason;
  if (ranked.front().scheme.across == Algorithm::kMachines) {
    reason =
        "workers share machines: each machine adds up what its workers have first, so that least crosses the "
        "network; ";
  }
  if (ranked.front().is_known_best) {
    reason = fmt::format("workers of one machine {}; ", why_known_best(ranked.front().scheme.across));
  }
  reason += in_words(ranked.front());
  if (ranked.size() > 1) reason += "; the runner-up " + in_words(ranked[1]);
  return reason;
}

}  // namespace onesum::planner
