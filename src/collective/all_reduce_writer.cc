#include "collective/all_reduce_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collective/doubling.h"
#include "collective/exchange.h"
#include "collective/hierarchical_copy.h"
#include "collective/native.h"
#include "collective/ring.h"
#include "collective/shuffle.h"

namespace onesum::collective {
namespace {

using Native = AllReduceWriter::Native;

Native native_part_of(const Topology& topology, const Task& task, const Scheme& scheme) {
  const bool inside = scheme.inside.value_or(scheme.across) == Algorithm::kNccl;
  if (!inside || !can_run_natively(topology, task)) return Native::kNone;
  return scheme.across == Algorithm::kNccl ? Native::kAll : Native::kInside;
}

// `nccl` where it does not run natively, as on devices that are not GPUs: the one-pass reduce inside a
// worker, `direct` across workers.
Scheme without_nccl(Scheme scheme) {
  if (scheme.across != Algorithm::kNccl) return scheme;
  if (!scheme.inside) scheme.inside = Algorithm::kNccl;
  scheme.across = Algorithm::kDirect;
  return scheme;
}

bool is_16_bit_float(const Task& task) {
  const Element raw = task.replicas.front().element;
  return raw == Element::kFloat16 || raw == Element::kBFloat16;
}

std::size_t most_replicas(const Level& level) {
  std::size_t most = 1;
  for (const Party& party : level.parties) most = std::max(most, party.terms.front().leaves.size());
  return most;
}

}  // namespace

AllReduceWriter::AllReduceWriter(const Topology& topology, const Task& task, const Scheme& scheme)
    : topology_(topology),
      task_(task),
      native_(native_part_of(topology, task, scheme)),
      scheme_(native_ == Native::kAll ? scheme : without_nccl(scheme)),
      level_(make_level()),
      halving_doubling_(level_) {
  if (native_ == Native::kInside && !has_native_sums(level_)) native_ = Native::kNone;
  choose_owners();
  if (rings_across()) rings_ = ring_orders(level_, topology_, scheme_.shards);
}

Cut AllReduceWriter::cut() const {
  Cut result;
  result.grain = level_.grain;
  switch (scheme_.across) {
    case Algorithm::kRing:
      result.units = {plan::SplitRule::kPadded, static_cast<std::uint32_t>(level_.parties.size())};
      break;
    case Algorithm::kHalvingDoubling:
      result.units = {plan::SplitRule::kPadded, halving_doubling_.units()};
      break;
    case Algorithm::kMachines:
      result.units = {plan::SplitRule::kRagged,
                      count_rows(machines_) * static_cast<std::uint32_t>(machines_.size())};
      break;
    case Algorithm::kHierarchicalCopy:
    case Algorithm::kExchange:
    case Algorithm::kDoubling:
    case Algorithm::kNccl:
      break;
    default:
      result.units = {plan::SplitRule::kRagged, static_cast<std::uint32_t>(owners_.size())};
      break;
  }
  result.shards = is_sharded_by_owners() ? 1 : scheme_.shards;
  return result;
}

std::size_t AllReduceWriter::turns() const {
  if (scheme_.across == Algorithm::kHierarchicalCopy) return level_.parties.size();
  if (scheme_.inside || !is_sharded_by_owners()) return 1;
  const bool at_hosts = scheme_.across == Algorithm::kShuffleHosts;
  const std::size_t devices = at_hosts ? topology_.hosts.size() : task_.replicas.size();
  return (devices + scheme_.shards - 1) / scheme_.shards;
}

void AllReduceWriter::write(Draft& draft) {
  draft.claim_order(draft.scatters() ? order() : "canonical");
  if (native_ == Native::kAll) return write_native(draft, scheme_.shards);
  for (std::uint32_t shard = 0; shard < cut().shards; ++shard) {
    switch (scheme_.across) {
      case Algorithm::kRing:
        write_ring(draft, level_, rings_[shard], shard);
        break;
      case Algorithm::kHalvingDoubling:
        halving_doubling_.write(draft, shard);
        break;
      case Algorithm::kHierarchicalCopy:
        write_hierarchical_copy(draft, level_, scheme_.number + shard, shard);
        break;
      case Algorithm::kExchange:
        write_exchange(draft, level_, shard);
        break;
      case Algorithm::kDoubling:
        write_doubling(draft, level_, shard);
        break;
      case Algorithm::kMachines:
        write_machines(draft, level_, machines_, shard);
        break;
      default:
        write_shuffle(draft, level_, owners_,
                      scheme_.across == Algorithm::kPool ? Sending::kWhole : Sending::kUnits, shard);
        break;
    }
  }
}

bool AllReduceWriter::has_scripts() const noexcept {
  if (native_ == Native::kAll) return false;
  if (native_ == Native::kInside && scheme_.shards > 1) return false;  // lanes of a rank wait for each other
  return scheme_.across == Algorithm::kRing || scheme_.across == Algorithm::kHalvingDoubling;
}

std::int32_t AllReduceWriter::rank_at(std::size_t position, std::uint32_t shard) const {
  const std::size_t party = rings_across() ? rings_[shard][position] : position;
  return topology_.rank_of(level_.parties[party].device);
}

Script AllReduceWriter::script(Draft& draft, std::size_t position, std::uint32_t shard) {
  if (rings_across()) return ring_lane(draft, level_, rings_[shard], position, shard);
  return halving_doubling_.lane(draft, position, shard);
}

bool AllReduceWriter::is_ring_of_ranks() const {
  if (!rings_across() || scheme_.shards > 1) return false;
  std::set<std::int32_t> ranks;
  for (const Party& party : level_.parties) ranks.insert(topology_.rank_of(party.device));
  return ranks.size() == level_.parties.size();
}

std::vector<plan::Chunks> AllReduceWriter::owned() const {
  std::vector<plan::Chunks> chunks(level_.parties.size());
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (scheme_.across == Algorithm::kHalvingDoubling) {
      chunks[i] = halving_doubling_.owned_by(i);
    } else {
      chunks[rings_across() ? rings_.front()[i] : i] = {i, 1};
    }
  }
  return chunks;
}

bool AllReduceWriter::is_sharded_by_owners() const {
  return scheme_.across == Algorithm::kShuffleHosts || scheme_.across == Algorithm::kShuffleDevices;
}

Level AllReduceWriter::make_level() const {
  Level level;
  if (!scheme_.inside) {
    level = level_of_devices(task_);
  } else {
    const bool ring_inside = scheme_.inside == Algorithm::kRing;
    const bool one_sum = scheme_.fast || ring_inside || rings_across() || native_ == Native::kInside;
    const bool at_host = scheme_.inside == Algorithm::kShuffleHosts;
    level = level_of_workers(task_, topology_, at_host ? Leader::kHost : Leader::kFirstDevice, one_sum);
    if (ring_inside) {
      level.grain = static_cast<std::uint32_t>(most_replicas(level));
      level.ring_inside = level.grain > 1;
    }
    if (native_ == Native::kInside) sum_natively(level, task_);
  }
  level.narrow = scheme_.fast;
  return level;
}

// Devices of the value, the first of every worker, then the second of every worker, and so on.
std::vector<std::int32_t> AllReduceWriter::devices_by_turns() const {
  std::map<std::int32_t, std::vector<std::int32_t>> by_rank;
  std::size_t most = 0;
  for (const Source& replica : task_.replicas) {
    std::vector<std::int32_t>& own = by_rank[topology_.rank_of(replica.device)];
    own.push_back(replica.device);
    most = std::max(most, own.size());
  }
  std::vector<std::int32_t> devices;
  for (std::size_t i = 0; i < most; ++i) {
    for (const auto& [rank, own] : by_rank) {
      if (i < own.size()) devices.push_back(own[i]);
    }
  }
  return devices;
}

void AllReduceWriter::choose_owners() {
  switch (scheme_.across) {
    case Algorithm::kShuffleHosts:
      // The second level of a hierarchy has the same owners for every pack.
      owners_ = owner_group(topology_.hosts, scheme_.shards, scheme_.inside ? 0 : scheme_.number);
      break;
    case Algorithm::kShuffleDevices:
      owners_ = owner_group(devices_by_turns(), scheme_.shards, scheme_.inside ? 0 : scheme_.number);
      break;
    case Algorithm::kDirect:
    case Algorithm::kPool:
      for (const Party& party : level_.parties) owners_.push_back(party.device);
      break;
    case Algorithm::kMachines:
      machines_ = parties_by_machine(level_, topology_);
      break;
    default:
      break;
  }
}

std::string AllReduceWriter::order() const {
  if (native_ != Native::kNone) return native_order();
  const bool ring_across = rings_across() && !is_canonical_ring();
  const bool ring_inside = level_.ring_inside && level_.grain > 2;
  std::string order = "canonical";
  if (ring_across) {
    order = scheme_.inside ? "ring over workers' sums" : "ring";
  } else if (!level_.canonical) {
    order = "canonical over workers' sums";
  }
  if (ring_inside) order = ring_across ? "ring over workers' rings" : "canonical over workers' rings";
  if (rounds_on_the_way()) order.append(", partial sums rounded to 16 bits");
  return order;
}

std::string AllReduceWriter::native_order() const {
  std::string order = "native";
  if (native_ != Native::kAll && level_.parties.size() > 1) {
    order = rings_across() ? "ring over workers' native sums" : "canonical over workers' native sums";
  }
  if (is_16_bit_float(task_)) order.append(", partial sums rounded to 16 bits");
  return order;
}

// One addition has no order.
bool AllReduceWriter::is_canonical_ring() const {
  const std::vector<Party>& parties = level_.parties;
  if (parties.size() > 2 || !level_.canonical) return false;
  return parties.size() == 1 ||
         plan::are_siblings(parties[0].terms.front().block, parties[1].terms.front().block, level_.tree) ||
         plan::are_siblings(parties[1].terms.front().block, parties[0].terms.front().block, level_.tree);
}

// Whether sums of several parties travel.
bool AllReduceWriter::passes_sums_on() const {
  if (level_.parties.size() <= 2) return false;
  if (scheme_.across == Algorithm::kMachines) return machines_.size() > 1 && count_rows(machines_) > 1;
  return has_scripts() || scheme_.across == Algorithm::kHierarchicalCopy;
}

bool AllReduceWriter::rounds_on_the_way() const {
  if (!scheme_.fast || !is_16_bit_float(task_) || level_.parties.size() == 1) return false;
  if (scheme_.across == Algorithm::kExchange || scheme_.across == Algorithm::kDoubling) return false;
  const bool brings_sums = std::ranges::any_of(
      level_.parties, [](const Party& party) { return !party.terms.front().raw || party.terms.size() > 1; });
  return brings_sums || passes_sums_on();
}

}  // namespace onesum::collective
