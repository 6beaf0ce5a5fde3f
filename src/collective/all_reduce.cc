#include "collective/all_reduce.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collective/draft.h"
#include "collective/halving_doubling.h"
#include "collective/hierarchical_copy.h"
#include "collective/ring.h"
#include "collective/shuffle.h"
#include "collective/terms.h"

namespace onesum::collective {
namespace {

constexpr std::array<std::pair<Algorithm, std::string_view>, 7> kNames = {{
    {Algorithm::kNccl, "nccl"},
    {Algorithm::kRing, "xring"},
    {Algorithm::kHalvingDoubling, "rechd"},
    {Algorithm::kShuffleHosts, "pscpu"},
    {Algorithm::kShuffleDevices, "psgpu"},
    {Algorithm::kDirect, "direct"},
    {Algorithm::kHierarchicalCopy, "hierarchical_copy"},
}};

// `nccl` on devices that are not GPUs: the one-pass reduce inside a worker, `direct` across workers.
Scheme without_nccl(Scheme scheme) {
  if (scheme.across != Algorithm::kNccl) return scheme;
  if (!scheme.inside) scheme.inside = Algorithm::kNccl;
  scheme.across = Algorithm::kDirect;
  return scheme;
}

// One scheme applied to one task.
class AllReduce {
 public:
  AllReduce(const Topology& topology, const Task& task, const Scheme& asked)
      : topology_(topology),
        task_(task),
        scheme_(without_nccl(asked)),
        level_(make_level()),
        scheme_of_halves_(level_) {
    choose_owners();
  }

  Cut cut() const {
    Cut result;
    result.grain = level_.grain;
    switch (scheme_.across) {
      case Algorithm::kRing:
        result.units = {plan::SplitRule::kPadded, static_cast<std::uint32_t>(level_.parties.size())};
        break;
      case Algorithm::kHalvingDoubling:
        result.units = {plan::SplitRule::kPadded, scheme_of_halves_.units()};
        break;
      case Algorithm::kHierarchicalCopy:
        break;
      default:
        result.units = {plan::SplitRule::kRagged, static_cast<std::uint32_t>(owners_.size())};
        break;
    }
    result.shards = is_sharded_by_owners() ? 1 : scheme_.shards;
    return result;
  }

  void write(Draft& draft) {
    draft.claim_order(order());
    if (rings_across()) rings_ = ring_orders(level_, topology_, scheme_.shards);
    for (std::uint32_t shard = 0; shard < cut().shards; ++shard) {
      switch (scheme_.across) {
        case Algorithm::kRing:
          write_ring(draft, level_, rings_[shard], shard);
          break;
        case Algorithm::kHalvingDoubling:
          scheme_of_halves_.write(draft, shard);
          break;
        case Algorithm::kHierarchicalCopy:
          write_hierarchical_copy(draft, level_, scheme_.number + shard, shard);
          break;
        default:
          write_shuffle(draft, level_, owners_, shard);
          break;
      }
    }
  }

  bool is_canonical() const { return order() == "canonical"; }

 private:
  bool rings_across() const { return scheme_.across == Algorithm::kRing; }
  bool is_sharded_by_owners() const {
    return scheme_.across == Algorithm::kShuffleHosts || scheme_.across == Algorithm::kShuffleDevices;
  }

  Level make_level() const {
    Level level;
    if (!scheme_.inside) {
      level = level_of_devices(task_);
    } else {
      const bool ring_inside = scheme_.inside == Algorithm::kRing;
      const bool one_sum = scheme_.fast || ring_inside || rings_across();
      const bool at_host = scheme_.inside == Algorithm::kShuffleHosts;
      level = level_of_workers(task_, topology_, at_host ? Leader::kHost : Leader::kFirstDevice, one_sum);
      if (ring_inside) {
        level.grain = static_cast<std::uint32_t>(most_replicas(level));
        level.ring_inside = level.grain > 1;
      }
    }
    level.narrow = scheme_.fast;
    return level;
  }

  static std::size_t most_replicas(const Level& level) {
    std::size_t most = 1;
    for (const Party& party : level.parties) most = std::max(most, party.terms.front().leaves.size());
    return most;
  }

  // Devices of the value, the first of every worker, then the second of every worker, and so on.
  std::vector<std::int32_t> devices_by_turns() const {
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

  void choose_owners() {
    switch (scheme_.across) {
      case Algorithm::kShuffleHosts:
        // The second level of a hierarchy has the same owners for every pack.
        owners_ = owner_group(topology_.hosts, scheme_.shards, scheme_.inside ? 0 : scheme_.number);
        break;
      case Algorithm::kShuffleDevices:
        owners_ = owner_group(devices_by_turns(), scheme_.shards, scheme_.inside ? 0 : scheme_.number);
        break;
      case Algorithm::kDirect:
        for (const Party& party : level_.parties) owners_.push_back(party.device);
        break;
      default:
        break;
    }
  }

  std::string order() const {
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

  // One addition has no order.
  bool is_canonical_ring() const {
    const std::vector<Party>& parties = level_.parties;
    if (parties.size() > 2 || !level_.canonical) return false;
    return parties.size() == 1 ||
           plan::are_siblings(parties[0].terms.front().block, parties[1].terms.front().block, level_.tree) ||
           plan::are_siblings(parties[1].terms.front().block, parties[0].terms.front().block, level_.tree);
  }

  bool rounds_on_the_way() const {
    const Element raw = task_.replicas.front().element;
    return scheme_.fast && (raw == Element::kFloat16 || raw == Element::kBFloat16) &&
           task_.replicas.size() > 2;
  }

  const Topology& topology_;
  const Task& task_;
  Scheme scheme_;
  Level level_;
  HalvingDoubling scheme_of_halves_;
  std::vector<std::int32_t> owners_;             // of the units of a shuffle
  std::vector<std::vector<std::size_t>> rings_;  // of each shard
};

}  // namespace

std::string_view name_of(Algorithm algorithm) noexcept {
  for (const auto& [known, name] : kNames) {
    if (known == algorithm) return name;
  }
  return "";
}

std::optional<Algorithm> algorithm_named(std::string_view name) noexcept {
  for (const auto& [algorithm, known] : kNames) {
    if (known == name) return algorithm;
  }
  return std::nullopt;
}

std::string to_string(const Scheme& scheme) {
  std::string name;
  if (scheme.inside) name.append(name_of(*scheme.inside)).append("/");
  name.append(name_of(scheme.across));
  if (scheme.shards > 1) name.append("#").append(std::to_string(scheme.shards));
  return name;
}

std::optional<Scheme> scheme_named(std::string_view name, std::uint32_t shards) noexcept {
  Scheme scheme;
  scheme.shards = shards;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    scheme.inside = algorithm_named(name.substr(0, slash));
    if (!scheme.inside) return std::nullopt;
    name.remove_prefix(slash + 1);
  }
  const std::optional<Algorithm> across = algorithm_named(name);
  if (!across) return std::nullopt;
  scheme.across = *across;
  return scheme;
}

plan::Plan all_reduce(const Topology& topology, const Task& task, const Scheme& scheme,
                      std::optional<std::int32_t> only_rank) {
  AllReduce all_reduce(topology, task, scheme);
  Draft draft(to_string(scheme), topology, task, all_reduce.cut(), only_rank);
  all_reduce.write(draft);
  return std::move(draft).take();
}

Scheme with_number(Scheme scheme, const Topology& topology, const Task& task, std::size_t number) {
  std::size_t turns = 1;
  if (scheme.across == Algorithm::kHierarchicalCopy) {
    turns = task.replicas.size();  // a multiple of the workers, or all that is needed
  } else if (!scheme.inside && scheme.across == Algorithm::kShuffleHosts) {
    turns = topology.hosts.size();
  } else if (!scheme.inside && scheme.across == Algorithm::kShuffleDevices) {
    turns = task.replicas.size();
  }
  const bool is_shuffle = scheme.across != Algorithm::kHierarchicalCopy;
  if (is_shuffle) turns = (turns + scheme.shards - 1) / scheme.shards;
  scheme.number = number % turns;
  return scheme;
}

bool is_canonical(const Topology& topology, const Task& task, const Scheme& scheme) {
  return AllReduce(topology, task, scheme).is_canonical();
}

}  // namespace onesum::collective
