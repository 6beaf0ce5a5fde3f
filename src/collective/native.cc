#include "collective/native.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "plan/rules.h"

namespace onesum::collective {
namespace {

std::vector<std::int32_t> devices_of(const Task& task, const std::vector<std::int32_t>& replicas) {
  std::vector<std::int32_t> devices;
  for (const std::int32_t r : replicas) {
    devices.push_back(task.replicas[static_cast<std::size_t>(r)].device);
  }
  return devices;
}

std::vector<std::int32_t> inputs_of(Draft& draft, const std::vector<std::int32_t>& replicas) {
  std::vector<std::int32_t> buffers;
  for (const std::int32_t r : replicas) buffers.push_back(draft.input(r));
  return buffers;
}

bool is_native(const Party& party) { return party.native_replicas.size() > 1; }

}  // namespace

bool can_run_natively(const Topology& topology, const Task& task) {
  if (task.contract != plan::Contract::kReduce || task.replicas.size() < 2) return false;
  if (task.combine != Combine::kSum) return false;
  const Element element = task.replicas.front().element;
  if (element != task.output || !plan::sums_natively(element, task.accumulator)) return false;
  std::set<std::int32_t> replicas, results, chips;
  for (const Source& replica : task.replicas) {
    if (!topology.is_gpu(replica.device) || !replicas.insert(replica.device).second) return false;
    if (!chips.insert(topology.chip_of(replica.device)).second) return false;
  }
  for (const Target& target : task.destinations) {
    if (!results.insert(target.device).second) return false;
  }
  return replicas == results;
}

void sum_natively(Level& level, const Task& task) {
  for (Party& party : level.parties) {
    const std::vector<Leaf>& leaves = party.terms.front().leaves;
    if (leaves.size() < 2) continue;
    for (const Leaf& leaf : leaves) party.native_replicas.push_back(leaf.number);
    party.native_results = std::exchange(party.destinations, {});
    for (const std::int32_t result : party.native_results) {
      const bool is_own = task.destinations[static_cast<std::size_t>(result)].device == party.device;
      if (is_own) party.destinations.push_back(result);
    }
  }
  if (!has_native_sums(level)) return;
  level.canonical = false;
  level.tree = level.parties.size();
  for (std::size_t p = 0; p < level.parties.size(); ++p) {
    Term& term = level.parties[p].terms.front();
    term.block = {p, p + 1};
    term.raw = true;  // a native sum has the type of the replicas, as they have themselves
  }
}

bool has_native_sums(const Level& level) { return std::ranges::any_of(level.parties, is_native); }

void write_native(Draft& draft, std::uint32_t shards) {
  const Task& task = draft.task();
  std::vector<std::int32_t> group;
  std::map<std::int32_t, std::vector<std::int32_t>> replicas, results;  // by rank
  for (std::size_t r = 0; r < task.replicas.size(); ++r) {
    group.push_back(task.replicas[r].device);
    replicas[draft.rank_of(group.back())].push_back(static_cast<std::int32_t>(r));
  }
  for (std::size_t d = 0; d < task.destinations.size(); ++d) {
    results[draft.rank_of(task.destinations[d].device)].push_back(static_cast<std::int32_t>(d));
  }
  for (const auto& [rank, own] : replicas) {
    if (!draft.writes(rank)) continue;
    const std::int32_t lane = draft.add_lane(rank);
    const std::vector<std::int32_t> sources = inputs_of(draft, own);
    const std::vector<std::int32_t> outputs = draft.outputs(results.at(rank));
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const plan::Chunks run = draft.units(shard, 0);
      draft.native(lane, plan::Collective::kAllReduce, group, run, sources, outputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto result = static_cast<std::size_t>(results.at(rank)[i]);
        draft.finish(lane, task.destinations[result].device, {{}, {{outputs[i], 0}}, false}, run,
                     std::span(&outputs[i], 1));
      }
    }
  }
}

Term open_native(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                 std::uint32_t shard) {
  const Party& own = level.parties[party];
  const std::vector<std::int32_t> sum = draft.outputs(own.destinations);
  NativeParty& written = draft.native_party(party);
  if (shard == 0) {
    written.reduce =
        draft.native(lane, plan::Collective::kReduce, devices_of(draft.task(), own.native_replicas),
                     draft.all_chunks(), inputs_of(draft, own.native_replicas), sum);
  } else {
    draft.wait(lane, written.reduce);
  }
  return {own.terms.front().block, {{sum.front(), 0}}, true};
}

void close_native(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                  std::uint32_t shard) {
  const Party& own = level.parties[party];
  NativeParty& written = draft.native_party(party);
  if (shard > 0) written.ends.push_back(draft.last_step(lane));
  if (shard + 1 < draft.cut().shards) return;
  const std::int32_t first = written.reduce.lane;
  for (const plan::StepRef& end : written.ends) draft.wait(first, end);
  std::vector<std::int32_t> others;
  for (const std::int32_t result : own.native_results) {
    if (result != own.destinations.front()) others.push_back(result);
  }
  const std::vector<std::int32_t> from = draft.outputs(own.destinations);
  draft.native(first, plan::Collective::kBroadcast, devices_of(draft.task(), own.native_replicas),
               draft.all_chunks(), from, draft.outputs(others));
}

}  // namespace onesum::collective
