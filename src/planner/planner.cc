#include "planner/planner.h"

#include <algorithm>
#include <utility>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "collective/concatenate.h"
#include "collective/one_device.h"
#include "plan/compose.h"
#include "plan/verify.h"
#include "planner/pack.h"
#include "planner/select.h"
#include "planner/spec.h"

namespace onesum::planner {
namespace {

// Plans are small and calls of a training loop few in kind; a caller with more kinds than this plans anew.
constexpr std::size_t kMaxCachedPlans = 256;

void add_task(Hasher& hasher, const collective::Task& task) {
  hasher.add(static_cast<std::uint64_t>(task.contract));
  hasher.add(static_cast<std::uint64_t>(task.accumulator));
  hasher.add(static_cast<std::uint64_t>(task.output));
  hasher.add(static_cast<std::uint64_t>(task.divisor));
  hasher.add(static_cast<std::uint64_t>(task.combine));
  hasher.add(task.replicas.size());
  for (const collective::Source& replica : task.replicas) {
    hasher.add(static_cast<std::uint64_t>(replica.device));
    hasher.add(static_cast<std::uint64_t>(replica.element));
  }
  hasher.add(task.destinations.size());
  for (const collective::Target& target : task.destinations) {
    hasher.add(static_cast<std::uint64_t>(target.device));
    hasher.add(static_cast<std::uint64_t>(target.in_place_of));
  }
}

void add_scheme(Hasher& hasher, const collective::Scheme& scheme) {
  hasher.add(scheme.inside ? 1 + static_cast<std::uint64_t>(*scheme.inside) : 0);
  hasher.add(static_cast<std::uint64_t>(scheme.across));
  hasher.add(scheme.shards);
  hasher.add(scheme.fast ? 1 : 0);
  hasher.add(scheme.number);
}

// Everything that shapes the part of a plan that one pack is. Plans are symbolic in size, so it does not
// count how long the pack is.
Fingerprint fingerprint_of(const PackOfStreams& pack, const Selection& selection,
                           const collective::Topology& topology) {
  Hasher hasher;
  hasher.add(topology.device_rank.size());
  for (const std::int32_t rank : topology.device_rank) hasher.add(static_cast<std::uint64_t>(rank));
  for (const std::int32_t host : topology.hosts) hasher.add(static_cast<std::uint64_t>(host));
  for (const bool is_gpu : topology.gpus) hasher.add(is_gpu ? 1 : 0);
  for (const std::int32_t machine : topology.machines) hasher.add(static_cast<std::uint64_t>(machine));
  for (const std::int32_t chip : topology.chips) hasher.add(static_cast<std::uint64_t>(chip));
  add_task(hasher, pack.task);
  hasher.add(static_cast<std::uint64_t>(pack.route.way));
  hasher.add(static_cast<std::uint64_t>(selection.on));
  hasher.add(static_cast<std::uint64_t>(selection.accumulation));
  add_scheme(hasher, selection.scheme);
  return hasher.finish();
}

// A function takes the place of the sum.
void check_function(const Request& request, const Policy& policy) {
  if (!uses_function(request.kind, policy) || is_sum_or_mean(request.op)) return;
  throw Error(ErrorCode::kInvalidArgument,
              policy.name + " has an accumulation_fn, which takes the place of " +
                  "the sum: it has a meaning for sum and mean, not for " + std::string(name_of(request.op)));
}

std::int32_t number_of(const Device& device, const Placement& placement, Resolved& resolved) {
  const auto found = std::ranges::find(resolved.devices, device);
  if (found != resolved.devices.end()) return static_cast<std::int32_t>(found - resolved.devices.begin());
  resolved.devices.push_back(device);
  resolved.device_rank.push_back(rank_of(device, placement));
  return static_cast<std::int32_t>(resolved.devices.size() - 1);
}

bool sums_on_hosts(const Policy& policy) {
  return std::ranges::any_of(policy.specs,
                             [](const AllReduceSpec& spec) { return has_level(spec, "pscpu"); });
}

// The workers' CPUs become devices of the plan only where an algorithm may use them.
collective::Topology topology_of(const Policy& policy, const Placement& placement, Resolved& resolved) {
  collective::Topology topology;
  if (sums_on_hosts(policy)) {
    if (placement.workers.empty())
      topology.hosts = {number_of(placement.defaults.host(), placement, resolved)};
    for (const Device& worker : placement.workers) {
      topology.hosts.push_back(number_of(worker.host().canonical(), placement, resolved));
    }
  }
  topology.device_rank = resolved.device_rank;
  for (const Device& device : resolved.devices) topology.gpus.push_back(device.type() == "GPU");
  topology.machines = placement.machines;
  if (placement.workers_share_gpus) {
    for (const Device& device : resolved.devices) topology.chips.push_back(device.index().value_or(0));
  }
  topology.by_network = placement.by_network;
  return topology;
}

// Larger plans are proved by tests of the algorithms that make them.
constexpr std::size_t kMostRanksToProve = 64;

std::shared_ptr<const plan::Plan> proved(plan::Plan plan) {
  const auto ranks = static_cast<std::size_t>(*std::ranges::max_element(plan.device_rank)) + 1;
  if (ranks <= kMostRanksToProve) plan::verify(plan);
  return std::make_shared<const plan::Plan>(std::move(plan));
}

// Parts that are proved make a whole that is: plan/compose.h.
std::shared_ptr<const plan::Plan> composed(const std::vector<std::shared_ptr<const plan::Plan>>& parts,
                                           plan::LaneUse lanes) {
  std::vector<const plan::Plan*> plans;
  for (const auto& part : parts) plans.push_back(part.get());
  return std::make_shared<const plan::Plan>(plan::side_by_side(plans, lanes));
}

// What has parts has one for each worker: in shared lanes the second worker would wait for its part until the
// first one has got its own.
plan::LaneUse lanes_of(CallKind kind) {
  return has_parts(kind) ? plan::LaneUse::kSeparate : plan::LaneUse::kShared;
}

plan::Plan build(const PackOfStreams& pack, const Selection& selection,
                 const collective::Topology& topology) {
  switch (pack.route.way) {
    case Way::kConcatenate:
      return collective::concatenate(topology, pack.task, selection.on);
    case Way::kAllReduce:
      return collective::all_reduce(topology, pack.task, selection.scheme);
    default:
      return collective::one_device(topology, pack.task, selection.on, selection.accumulation);
  }
}

std::vector<Selection> select_all(const std::vector<PackOfStreams>& packs, std::int32_t on,
                                  const Surroundings& surroundings) {
  std::vector<Selection> selections;
  for (const PackOfStreams& pack : packs) selections.push_back(select(pack, on, surroundings));
  return selections;
}

Planned planned_of(Resolved resolved, std::vector<PackOfStreams> packs,
                   const std::vector<Selection>& selections, std::shared_ptr<const plan::Plan> plan) {
  Planned planned;
  planned.plan = std::move(plan);
  for (PackOfStreams& pack : packs) {
    planned.tables.push_back(std::move(pack.table));
    planned.pack_streams.push_back(std::move(pack.streams));
  }
  for (const Selection& selection : selections) {
    planned.choices.push_back({selection.algorithm, selection.reason, selection.canonical, selection.native});
  }
  planned.slots = count_slots(resolved.streams);
  planned.streams = std::move(resolved.streams);
  planned.devices = std::move(resolved.devices);
  return planned;
}

}  // namespace

const Device* replica_without_gpu(const Planned& planned) {
  for (const Stream& stream : planned.streams) {
    for (const collective::Source& replica : stream.task.replicas) {
      const Device& device = planned.devices[static_cast<std::size_t>(replica.device)];
      if (device.type() != "GPU") return &device;
    }
  }
  return nullptr;
}

Planner::Planner(Policy policy, Placement placement, const plan::CostConstants& constants)
    : policy_(std::move(policy)), placement_(std::move(placement)), constants_(constants) {}

Planned Planner::plan(const Request& request) {
  if (request.pairs.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "no pairs to make a plan for; expected at least one");
  }
  check_function(request, policy_);
  Resolved resolved = resolve(request, placement_);
  settle_memory(resolved.streams);
  std::vector<PackOfStreams> packs =
      pack_streams(resolved.streams, request.kind, policy_, request.options.bytes_per_pack);
  const std::int32_t on =
      policy_.reduce_to_device ? number_of(*policy_.reduce_to_device, placement_, resolved) : -1;
  const collective::Topology topology = topology_of(policy_, placement_, resolved);
  const std::vector<Selection> selections =
      select_all(packs, on, {request.kind, policy_, request.options, resolved.devices, topology, constants_});
  std::shared_ptr<const plan::Plan> plan = plan_of(packs, selections, topology, lanes_of(request.kind));
  return planned_of(std::move(resolved), std::move(packs), selections, std::move(plan));
}

std::shared_ptr<const plan::Plan> Planner::plan_of(const std::vector<PackOfStreams>& packs,
                                                   const std::vector<Selection>& selections,
                                                   const collective::Topology& topology,
                                                   plan::LaneUse lanes) {
  std::vector<Fingerprint> fingerprints;
  Hasher whole;
  whole.add(static_cast<std::uint64_t>(lanes));
  for (std::size_t p = 0; p < packs.size(); ++p) {
    fingerprints.push_back(fingerprint_of(packs[p], selections[p], topology));
    whole.add(fingerprints.back().high);
    whole.add(fingerprints.back().low);
  }
  const Fingerprint fingerprint = whole.finish();
  if (auto known = cached_plan(fingerprint)) return known;
  std::vector<std::shared_ptr<const plan::Plan>> parts;
  for (std::size_t p = 0; p < packs.size(); ++p) {
    std::shared_ptr<const plan::Plan> part = cached_plan(fingerprints[p]);
    if (!part) {
      part = proved(build(packs[p], selections[p], topology));
      keep(fingerprints[p], part);
    }
    parts.push_back(std::move(part));
  }
  const std::shared_ptr<const plan::Plan> plan = parts.size() == 1 ? parts.front() : composed(parts, lanes);
  keep(fingerprint, plan);
  return plan;
}

std::shared_ptr<const plan::Plan> Planner::cached_plan(const Fingerprint& fingerprint) const {
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(fingerprint);
  return found == plans_.end() ? nullptr : found->second;
}

void Planner::keep(const Fingerprint& fingerprint, std::shared_ptr<const plan::Plan> plan) {
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= kMaxCachedPlans) plans_.clear();
  plans_.emplace(fingerprint, std::move(plan));
}

}  // namespace onesum::planner
