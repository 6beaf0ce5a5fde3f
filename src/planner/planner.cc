#include "planner/planner.h"

#include <algorithm>
#include <utility>

#include <onesum/error.h>

#include "collective/one_device.h"
#include "plan/compose.h"
#include "plan/verify.h"
#include "planner/pack.h"
#include "planner/select.h"

namespace onesum::planner {
namespace {

// Plans are small and calls of a training loop few in kind; a caller with more kinds than this plans anew.
constexpr std::size_t kMaxCachedPlans = 256;

void add_task(Hasher& hasher, const collective::Task& task) {
  hasher.add(static_cast<std::uint64_t>(task.contract));
  hasher.add(static_cast<std::uint64_t>(task.accumulator));
  hasher.add(static_cast<std::uint64_t>(task.output));
  hasher.add(static_cast<std::uint64_t>(task.divisor));
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

// Everything that shapes the plan. Plans are symbolic in size, so only what tells packs apart counts, not how
// long they are.
Fingerprint fingerprint_of(const std::vector<PackOfStreams>& packs, const std::vector<Selection>& selections,
                           const std::vector<Device>& devices) {
  Hasher hasher;
  hasher.add(devices.size());
  for (const Device& device : devices) hasher.add(device.hash());
  for (std::size_t p = 0; p < packs.size(); ++p) {
    add_task(hasher, packs[p].task);
    hasher.add(selections[p].algorithm);
    hasher.add(selections[p].on.hash());
    hasher.add(static_cast<std::uint64_t>(selections[p].accumulation));
  }
  return hasher.finish();
}

std::int32_t number_of(const Device& device, std::vector<Device>& devices) {
  const auto found = std::find(devices.begin(), devices.end(), device);
  if (found == devices.end()) {
    devices.push_back(device);
    return static_cast<std::int32_t>(devices.size() - 1);
  }
  return static_cast<std::int32_t>(found - devices.begin());
}

plan::Plan build(const std::vector<PackOfStreams>& packs, const std::vector<Selection>& selections,
                 const std::vector<std::int32_t>& on, std::size_t num_devices) {
  const std::vector<std::int32_t> device_rank(num_devices, 0);  // all of this process
  std::vector<plan::Plan> parts;
  for (std::size_t p = 0; p < packs.size(); ++p) {
    parts.push_back(collective::one_device(device_rank, packs[p].task, on[p], selections[p].accumulation));
  }
  return plan::side_by_side(parts);
}

}  // namespace

Planner::Planner(Policy policy, Placement placement)
    : policy_(std::move(policy)), placement_(std::move(placement)) {}

Planned Planner::plan(const Request& request) {
  if (request.pairs.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "no pairs to make a plan for; expected at least one");
  }
  Resolved resolved = resolve(request, placement_);
  std::vector<PackOfStreams> packs = pack_streams(resolved.streams, uses_function(request.kind, policy_));

  Planned planned;
  std::vector<Selection> selections;
  std::vector<std::int32_t> on;
  for (const PackOfStreams& pack : packs) {
    selections.push_back(select(pack, request.kind, policy_, resolved.devices));
    on.push_back(number_of(selections.back().on, resolved.devices));
    planned.choices.push_back({selections.back().algorithm, selections.back().reason});
  }

  const Fingerprint fingerprint = fingerprint_of(packs, selections, resolved.devices);
  planned.plan = cached_plan(fingerprint);
  if (!planned.plan) {
    auto plan = std::make_shared<const plan::Plan>(build(packs, selections, on, resolved.devices.size()));
    plan::verify(*plan);
    keep(fingerprint, plan);
    planned.plan = std::move(plan);
  }
  for (PackOfStreams& pack : packs) {
    planned.tables.push_back(std::move(pack.table));
    planned.pack_streams.push_back(std::move(pack.streams));
  }
  planned.slots = count_slots(resolved.streams);
  planned.streams = std::move(resolved.streams);
  planned.devices = std::move(resolved.devices);
  return planned;
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
