#include "planner/automatic.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/amounts.h"
#include "base/element.h"
#include "collective/native.h"
#include "plan/sizes.h"

namespace onesum::planner {
namespace {

using collective::Algorithm;
using collective::Scheme;

// Everyone sends to everyone: beyond this many workers the plan itself is too large.
constexpr std::size_t kMostWorkersForDirect = 256;
// Below this many bytes another shard is another message for nothing.
constexpr std::size_t kFewestBytesForShards = std::size_t{1} << 20;

std::size_t count_workers(const collective::Topology& topology, const collective::Task& task) {
  std::set<std::int32_t> ranks;
  for (const collective::Source& replica : task.replicas) ranks.insert(topology.rank_of(replica.device));
  return ranks.size();
}

Scheme over_workers(Algorithm across, std::uint32_t shards, bool fast) {
  Scheme scheme;
  scheme.inside = Algorithm::kNccl;
  scheme.across = across;
  scheme.shards = shards;
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

std::vector<Scheme> schemes_for(std::size_t workers, std::size_t bytes, const CommunicationOptions& options) {
  const bool fast = options.numerics == Numerics::kFast;
  if (workers == 1) return {over_workers(Algorithm::kNccl, 1, fast)};
  if (options.implementation == Implementation::kNccl) return {over_workers(Algorithm::kNccl, 1, fast)};
  std::vector<Algorithm> algorithms = {Algorithm::kHalvingDoubling};
  if (workers <= kMostWorkersForDirect) algorithms.push_back(Algorithm::kDirect);
  if (fast) {
    if (options.implementation == Implementation::kRing) algorithms.clear();
    algorithms.push_back(Algorithm::kRing);
  }
  std::vector<Scheme> schemes;
  for (const Algorithm algorithm : algorithms) {
    schemes.push_back(over_workers(algorithm, 1, fast));
    if (bytes >= kFewestBytesForShards) schemes.push_back(over_workers(algorithm, 2, fast));
  }
  return schemes;
}

}  // namespace

std::vector<Candidate> candidates(const collective::Topology& topology, const collective::Task& task,
                                  std::size_t elements, const CommunicationOptions& options,
                                  const plan::CostConstants& constants) {
  const std::size_t bytes = elements * size_of(task.replicas.front().element);
  std::vector<Candidate> ranked;
  std::vector<Scheme> schemes = schemes_for(count_workers(topology, task), bytes, options);
  if (collective::can_run_natively(topology, task)) {
    const bool is_open = options.implementation == Implementation::kAuto && schemes.size() > 1;
    if (options.numerics != Numerics::kFast) {
      schemes = without_native(std::move(schemes));
    } else if (is_open) {
      schemes.push_back(over_workers(Algorithm::kNccl, 1, true));
    }
  }
  for (const Scheme& scheme : schemes) {
    const plan::Plan plan = collective::all_reduce(topology, task, scheme);
    const plan::Sizes sizes{{elements}, {{}}};
    const Candidate candidate{scheme, plan::cost(plan, sizes, constants).seconds};
    ranked.insert(std::ranges::upper_bound(ranked, candidate.seconds, {}, &Candidate::seconds), candidate);
  }
  return ranked;
}

std::string reason_of(const std::vector<Candidate>& ranked) {
  const auto in_words = [](const Candidate& candidate) {
    return fmt::format("{} is predicted to take {}", to_string(candidate.scheme),
                       format_time(candidate.seconds));
  };
  std::string reason = in_words(ranked.front());
  if (ranked.size() > 1) reason += "; the runner-up " + in_words(ranked[1]);
  return reason;
}

}  // namespace onesum::planner
