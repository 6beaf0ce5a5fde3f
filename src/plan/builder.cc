#include "plan/builder.h"

#include <algorithm>
#include <utility>

namespace onesum::plan {

Builder::Builder(std::string algorithm, std::vector<std::int32_t> device_rank) {
  plan_.algorithm = std::move(algorithm);
  plan_.device_rank = std::move(device_rank);
}

std::int32_t Builder::add_pack(Pack pack) {
  plan_.packs.push_back(std::move(pack));
  return static_cast<std::int32_t>(plan_.packs.size() - 1);
}

std::int32_t Builder::add_channel(Channel channel) {
  plan_.channels.push_back(channel);
  return static_cast<std::int32_t>(plan_.channels.size() - 1);
}

std::int32_t Builder::add_group(std::vector<std::int32_t> devices) {
  std::ranges::sort(devices);
  const Group group{std::move(devices)};
  const auto found = std::ranges::find(plan_.groups, group);
  const auto number = static_cast<std::int32_t>(found - plan_.groups.begin());
  if (found == plan_.groups.end()) plan_.groups.push_back(group);
  return number;
}

std::int32_t Builder::add_lane(std::int32_t rank) {
  plan_.lanes.push_back({rank, {}});
  return static_cast<std::int32_t>(plan_.lanes.size() - 1);
}

std::int32_t Builder::add_buffer(Buffer buffer) {
  plan_.buffers.push_back(buffer);
  return static_cast<std::int32_t>(plan_.buffers.size() - 1);
}

std::int32_t Builder::input(std::int32_t pack, std::int32_t replica, Element element) {
  const Pack& value = plan_.pack(pack);
  const bool concatenate = value.contract == Contract::kConcatenate;
  const Chunks window = concatenate ? Chunks{static_cast<std::uint32_t>(replica), 1} : all_chunks(pack);
  const std::int32_t device = value.replicas[static_cast<std::size_t>(replica)];
  return add_buffer({Role::kInput, device, pack, replica, element, window});
}

std::int32_t Builder::output(std::int32_t pack, std::int32_t destination) {
  const Pack& value = plan_.pack(pack);
  const std::int32_t device = value.destinations[static_cast<std::size_t>(destination)];
  return add_buffer({Role::kOutput, device, pack, destination, value.output, all_chunks(pack)});
}

std::int32_t Builder::inout(std::int32_t pack, std::int32_t replica, Element element) {
  const std::int32_t device = plan_.pack(pack).replicas[static_cast<std::size_t>(replica)];
  return add_buffer({Role::kInOut, device, pack, replica, element, all_chunks(pack)});
}

std::int32_t Builder::temp(std::int32_t pack, std::int32_t device, Element element, Chunks window) {
  return add_buffer({Role::kTemp, device, pack, num_temps_++, element, window});
}

std::int32_t Builder::slot(std::int32_t pack, std::int32_t channel, Element element) {
  return add_buffer({Role::kSlot, plan_.channel(channel).from, pack, channel, element, all_chunks(pack)});
}

std::int32_t Builder::view(std::int32_t pack, std::int32_t channel, Element element) {
  return add_buffer({Role::kView, plan_.channel(channel).to, pack, channel, element, all_chunks(pack)});
}

void Builder::set_window(std::int32_t buffer, Chunks window) {
  plan_.buffers[static_cast<std::size_t>(buffer)].window = window;
}

Chunks Builder::all_chunks(std::int32_t pack) const { return {0, num_chunks(plan_.pack(pack).split)}; }

Operand Builder::whole(std::int32_t buffer) const { return {buffer, plan_.buffer(buffer).window, 0}; }

std::int32_t Builder::copy(std::int32_t lane, std::int32_t device, std::span<const Operand> destinations,
                           Operand source) {
  Step& step = append(lane, Op::kCopy, destinations, std::span(&source, 1));
  step.device = device;
  return last_step(lane);
}

std::int32_t Builder::reduce(std::int32_t lane, std::int32_t device, std::span<const Operand> destinations,
                             std::span<const Operand> sources, Element accumulator, std::int64_t divisor,
                             Combine combine) {
  Step& step = append(lane, Op::kReduce, destinations, sources);
  step.device = device;
  step.accumulator = accumulator;
  step.divisor = divisor;
  if (sources.size() > 1) step.combine = combine;  // one source is combined with nothing
  return last_step(lane);
}

std::int32_t Builder::call(std::int32_t lane, std::int32_t device, Operand destination,
                           std::span<const Operand> sources, Element accumulator, std::int64_t divisor) {
  Step& step = append(lane, Op::kCall, std::span(&destination, 1), sources);
  step.device = device;
  step.accumulator = accumulator;
  step.divisor = divisor;
  return last_step(lane);
}

std::int32_t Builder::native(std::int32_t lane, Collective collective, std::int32_t group,
                             std::span<const Operand> destinations, std::span<const Operand> sources) {
  Step& step = append(lane, Op::kNative, destinations, sources);
  step.collective = collective;
  step.group = group;
  for (const std::int32_t device : plan_.group(group).devices) {
    if (plan_.rank_of(device) != plan_.lane(lane).rank) continue;
    step.device = device;
    break;
  }
  return last_step(lane);
}

std::int32_t Builder::recv(std::int32_t lane, std::int32_t channel, Operand view) {
  Step& step = append(lane, Op::kRecv, std::span(&view, 1), {});
  step.device = plan_.channel(channel).to;
  step.channel = channel;
  return last_step(lane);
}

std::int32_t Builder::release(std::int32_t lane, std::int32_t channel) {
  Step& step = append(lane, Op::kRelease, {}, {});
  step.device = plan_.channel(channel).to;
  step.channel = channel;
  return last_step(lane);
}

std::int32_t Builder::counts(std::int32_t lane, std::int32_t pack) {
  Step& step = append(lane, Op::kCounts, {}, {});
  step.pack = pack;
  return last_step(lane);
}

std::int32_t Builder::wait(std::int32_t lane, std::int32_t other_lane, std::int32_t step_number) {
  Step& step = append(lane, Op::kWait, {}, {});
  step.lane = other_lane;
  step.step = step_number;
  return last_step(lane);
}

void Builder::claim_order(std::string order) { plan_.order = std::move(order); }

Plan Builder::take() && {
  lay_out_operands(plan_);
  return std::move(plan_);
}

void Builder::drop_steps(std::int32_t lane) {
  dropped_ = std::move(plan_.lanes[static_cast<std::size_t>(lane)].steps);
  dropped_.clear();
  plan_.operands.clear();
}

// A step is made where it stays: copying what was just written field by field is slow.
Step& Builder::append(std::int32_t lane, Op op, std::span<const Operand> destinations,
                      std::span<const Operand> sources) {
  std::vector<Step>& steps = plan_.lanes[static_cast<std::size_t>(lane)].steps;
  if (steps.empty()) steps.swap(dropped_);
  Step& step = steps.emplace_back();
  step.op = op;
  step.first_operand = static_cast<std::uint32_t>(plan_.operands.size());
  step.num_destinations = static_cast<std::uint16_t>(destinations.size());
  step.num_sources = static_cast<std::uint16_t>(sources.size());
  plan_.operands.insert(plan_.operands.end(), destinations.begin(), destinations.end());
  plan_.operands.insert(plan_.operands.end(), sources.begin(), sources.end());
  return step;
}

std::int32_t Builder::last_step(std::int32_t lane) const {
  return static_cast<std::int32_t>(plan_.lane(lane).steps.size() - 1);
}

}  // namespace onesum::plan
