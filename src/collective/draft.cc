#include "collective/draft.h"

#include <algorithm>
#include <utility>

namespace onesum::collective {
namespace {

using plan::Chunks;
using plan::Operand;

plan::Pack pack_of(const Task& task, const Cut& cut) {
  plan::Pack pack;
  pack.contract = task.contract;
  pack.accumulator = task.accumulator;
  pack.output = task.output;
  pack.divisor = task.divisor;
  pack.combine = task.combine;
  for (const Source& replica : task.replicas) pack.replicas.push_back(replica.device);
  for (const Target& target : task.destinations) pack.destinations.push_back(target.device);
  if (cut.shards > 1) pack.split.push_back({plan::SplitRule::kRagged, cut.shards});
  const bool counted = cut.units.rule == plan::SplitRule::kCounts;
  if (cut.units.parts > 1 || counted) pack.split.push_back(cut.units);
  if (cut.grain > 1) pack.split.push_back({plan::SplitRule::kPadded, cut.grain});
  return pack;
}

}  // namespace

Draft::Draft(std::string algorithm, const Topology& topology, const Task& task, const Cut& cut,
             std::optional<std::int32_t> only_rank)
    : topology_(topology),
      task_(task),
      cut_(cut),
      only_rank_(only_rank),
      builder_(std::move(algorithm), topology.device_rank) {
  builder_.add_pack(pack_of(task, cut));
  for (std::size_t d = 0; d < task.destinations.size(); ++d) {
    const std::int32_t replica = task.destinations[d].in_place_of;
    if (replica >= 0) replaced_by_.emplace(replica, static_cast<std::int32_t>(d));
  }
}

Chunks Draft::units(std::uint32_t shard, std::uint32_t first, std::uint32_t count) const {
  return {(shard * cut_.units.parts + first) * cut_.grain, count * cut_.grain};
}

std::int32_t Draft::noted(std::int32_t buffer, Element element) {
  elements_.resize(static_cast<std::size_t>(buffer) + 1, element);
  return buffer;
}

std::int32_t Draft::input(std::int32_t replica) {
  const auto [entry, is_new] = inputs_.try_emplace(replica, -1);
  if (is_new) {
    const Element element = task_.replicas[static_cast<std::size_t>(replica)].element;
    const std::int32_t buffer = replaced_by_.contains(replica) ? builder_.inout(0, replica, element)
                                                               : builder_.input(0, replica, element);
    if (!scatters() && windows_.contains(replica)) builder_.set_window(buffer, windows_.at(replica));
    entry->second = noted(buffer, element);
  }
  return entry->second;
}

std::int32_t Draft::output(std::int32_t destination) {
  const std::int32_t replica = task_.destinations[static_cast<std::size_t>(destination)].in_place_of;
  if (replica >= 0) return input(replica);
  const auto [entry, is_new] = outputs_.try_emplace(destination, -1);
  if (is_new) {
    entry->second = noted(builder_.output(0, destination), task_.output);
    if (!gathers()) builder_.set_window(entry->second, windows_.at(destination));
  }
  return entry->second;
}

std::vector<std::int32_t> Draft::outputs(std::span<const std::int32_t> destinations) {
  std::vector<std::int32_t> buffers;
  buffers.reserve(destinations.size());
  for (const std::int32_t destination : destinations) buffers.push_back(output(destination));
  return buffers;
}

std::int32_t Draft::temporary(std::int32_t device, Chunks run) {
  return noted(builder_.temp(0, device, task_.accumulator, run), task_.accumulator);
}

std::int32_t Draft::whole_replica(std::int32_t device) {
  const Element element = task_.replicas.front().element;
  return noted(builder_.temp(0, device, element, builder_.all_chunks(0)), element);
}

Element Draft::travels_in(const Term& term, bool narrow) const {
  const Element raw = task_.replicas.front().element;
  if (term.raw) return raw;
  const bool rounds = raw == Element::kFloat16 || raw == Element::kBFloat16;
  return narrow && rounds ? task_.output : task_.accumulator;
}

Term Draft::bound(const Term& term) {
  Term result = term;
  for (Leaf& leaf : result.leaves) leaf.number = input(leaf.number);
  return result;
}

Draft::Line& Draft::line(std::uint32_t shard, const Message& message) {
  const auto number =
      message.number * static_cast<std::int32_t>(cut_.shards) + static_cast<std::int32_t>(shard);
  const auto ends = (static_cast<std::uint64_t>(message.from) << 32) | static_cast<std::uint32_t>(message.to);
  std::vector<std::pair<std::int32_t, Line>>& between = lines_[ends];
  const auto found = std::ranges::find(between, number, &std::pair<std::int32_t, Line>::first);
  if (found != between.end()) return found->second;
  between.emplace_back(number, Line{builder_.add_channel({message.from, message.to, number}), -1, -1});
  return between.back().second;
}

std::int32_t Draft::slot(std::uint32_t shard, const Message& message) {
  Line& between = line(shard, message);
  if (between.slot < 0)
    between.slot = noted(builder_.slot(0, between.channel, message.element), message.element);
  return between.slot;
}

Draft::ReceivingEnd Draft::receiving_end(std::uint32_t shard, const Message& message) {
  Line& between = line(shard, message);
  if (between.view < 0)
    between.view = noted(builder_.view(0, between.channel, message.element), message.element);
  return {between.channel, between.view};
}

void Draft::receive(std::int32_t lane, const ReceivingEnd& end, Chunks run) {
  builder_.recv(lane, end.channel, {end.view, run});
}

std::int32_t Draft::receive(std::int32_t lane, std::uint32_t shard, const Message& message, Chunks run) {
  const ReceivingEnd end = receiving_end(shard, message);
  receive(lane, end, run);
  return end.view;
}

void Draft::release(std::int32_t lane, std::uint32_t shard, const Message& message) {
  builder_.release(lane, line(shard, message).channel);
}

void Draft::form(std::int32_t lane, std::int32_t device, const Term& term, Chunks run,
                 std::span<const std::int32_t> destinations) {
  write(lane, device, term, run, destinations, 1);
}

void Draft::finish(std::int32_t lane, std::int32_t device, const Term& term, Chunks run,
                   std::span<const std::int32_t> destinations) {
  write(lane, device, term, run, destinations, task_.divisor);
}

void Draft::write(std::int32_t lane, std::int32_t device, const Term& term, Chunks run,
                  std::span<const std::int32_t> destinations, std::int64_t divisor) {
  if (destinations.empty()) return;
  const bool moves_only = term.leaves.size() == 1 && divisor == 1 &&
                          element_of(term.leaves.front().number) == element_of(destinations.front());
  if (moves_only) {
    copy(lane, device, term.leaves.front().number, run, destinations);
    return;
  }
  sources_.clear();
  targets_.clear();
  for (const Leaf& leaf : term.leaves) sources_.push_back({leaf.number, run, leaf.merges});
  for (const std::int32_t buffer : destinations) targets_.push_back({buffer, run});
  builder_.reduce(lane, device, targets_, sources_, task_.accumulator, divisor, task_.combine);
}

void Draft::copy(std::int32_t lane, std::int32_t device, std::int32_t source, Chunks run,
                 std::span<const std::int32_t> destinations) {
  targets_.clear();
  for (const std::int32_t buffer : destinations) {
    if (buffer != source) targets_.push_back({buffer, run});
  }
  if (!targets_.empty()) builder_.copy(lane, device, targets_, {source, run});
}

plan::StepRef Draft::native(std::int32_t lane, plan::Collective collective, std::vector<std::int32_t> group,
                            Chunks run, std::span<const std::int32_t> sources,
                            std::span<const std::int32_t> destinations) {
  sources_.clear();
  targets_.clear();
  for (const std::int32_t buffer : sources) sources_.push_back({buffer, run});
  for (const std::int32_t buffer : destinations) targets_.push_back({buffer, run});
  const std::int32_t number = builder_.add_group(std::move(group));
  return {lane, builder_.native(lane, collective, number, targets_, sources_)};
}

plan::StepRef Draft::last_step(std::int32_t lane) const {
  return {lane, static_cast<std::int32_t>(builder_.plan().lane(lane).steps.size()) - 1};
}

void Draft::call(std::int32_t lane, std::int32_t device, std::span<const std::int32_t> sources,
                 std::int32_t destination) {
  const Chunks all = builder_.all_chunks(0);
  std::vector<Operand> operands;
  for (const std::int32_t buffer : sources) operands.push_back({buffer, all});
  builder_.call(lane, device, {destination, all}, operands, task_.replicas.front().element);
}

}  // namespace onesum::collective
