#include "collective/party.h"

#include "collective/native.h"

namespace onesum::collective {
namespace {

// The sum of a worker's replicas in the order of a ring: chunk m of a unit begins with replica m + 1 and goes
// round to replica m. The worker's devices share memory, so that each chunk is one pass instead of a message
// from device to device.
Term ring_of(Draft& draft, std::int32_t lane, const Level& level, const Party& party, std::uint32_t shard) {
  const std::vector<Leaf> leaves = draft.bound(party.terms.front()).leaves;
  const std::uint32_t units = draft.cut().units.parts;
  const std::int32_t sum = draft.temporary(party.device, draft.units(shard, 0, units));
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    for (std::uint32_t chunk = 0; chunk < level.grain; ++chunk) {
      Term in_order;
      for (std::size_t i = 1; i <= leaves.size(); ++i) {
        const Leaf& leaf = leaves[(chunk + i) % leaves.size()];
        in_order.leaves.push_back({leaf.number, i == 1 ? std::uint8_t{0} : std::uint8_t{1}});
      }
      const plan::Chunks run{draft.units(shard, unit).first + chunk, 1};
      draft.form(lane, party.device, in_order, run, std::span(&sum, 1));
    }
  }
  return {party.terms.front().block, {{sum, 0}}, false};
}

}  // namespace

std::vector<Term> open_party(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                             std::uint32_t shard) {
  const Party& own = level.parties[party];
  if (level.ring_inside && own.terms.front().leaves.size() > 1) {
    return {ring_of(draft, lane, level, own, shard)};
  }
  if (!own.native_replicas.empty()) return {open_native(draft, lane, level, party, shard)};
  std::vector<Term> terms;
  terms.reserve(own.terms.size());
  for (const Term& term : own.terms) terms.push_back(draft.bound(term));
  return terms;
}

void close_party(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                 std::uint32_t shard) {
  if (!level.parties[party].native_replicas.empty()) close_native(draft, lane, level, party, shard);
}

std::map<std::int32_t, std::vector<std::int32_t>> results_by_rank(const Draft& draft, const Level& level) {
  std::map<std::int32_t, std::vector<std::int32_t>> results;
  if (has_native_sums(level)) {  // a worker's other results come from one of them
    for (const Party& party : level.parties) results[draft.rank_of(party.device)] = party.destinations;
    return results;
  }
  for (std::size_t d = 0; d < draft.task().destinations.size(); ++d) {
    const std::int32_t rank = draft.rank_of(draft.task().destinations[d].device);
    results[rank].push_back(static_cast<std::int32_t>(d));
  }
  return results;
}

}  // namespace onesum::collective
