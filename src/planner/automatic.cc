#include "planner/automatic.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/element.h"
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
  for (const Scheme& scheme : schemes_for(count_workers(topology, task), bytes, options)) {
    const plan::Plan plan = collective::all_reduce(topology, task, scheme);
    const plan::Sizes sizes{{elements}, {{}}};
    const Candidate candidate{scheme, plan::cost(plan, sizes, constants).seconds};
    ranked.insert(std::ranges::upper_bound(ranked, candidate.seconds, {}, &Candidate::seconds), candidate);
  }
  return ranked;
}

std::string reason_of(const std::vector<Candidate>& ranked) {
  const auto in_words = [](const Candidate& candidate) {
    return fmt::format("{} is predicted to take {:.1f} µs", to_string(candidate.scheme),
                       candidate.seconds * 1e6);
  };
  std::string reason = in_words(ranked.front());
  if (ranked.size() > 1) reason += "; the runner-up " + in_words(ranked[1]);
  return reason;
}

}  // namespace onesum::planner
