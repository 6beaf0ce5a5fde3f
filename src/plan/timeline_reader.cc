#include "plan/timeline_reader.h"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

TimelineReader::TimelineReader(std::span<const TimelineLane> lanes, const Sizes& sizes,
                               const CostConstants& constants)
    : lanes_(lanes), sizes_(sizes), constants_(constants), actions_(lanes.size()) {}

std::span<const Action> TimelineReader::read(std::int32_t lane) {
  Actions& actions = actions_[static_cast<std::size_t>(lane)];
  actions.clear();
  Stretch stretch;
  while (actions.empty() && lanes_[static_cast<std::size_t>(lane)].stream->next(stretch)) {
    open(*stretch.part);
    for (const Step& step : stretch.steps) append(lane, step, actions);
  }
  return actions;
}

void TimelineReader::open(const Plan& part) {
  if (part_ != &part) {
    part_ = &part;
    std::unique_ptr<std::vector<KnownLine>>& known = known_lines_[&part];
    if (!known) known = std::make_unique<std::vector<KnownLine>>();
    known_ = known.get();
  }
  if (known_->size() < part.channels.size()) known_->resize(part.channels.size());
  if (cost_.devices.size() < part.device_rank.size()) cost_.devices.resize(part.device_rank.size());
}

void TimelineReader::append(std::int32_t lane, const Step& step, Actions& actions) {
  using Kind = Action::Kind;
  switch (step.op) {
    case Op::kRecv:
      actions.push_back({0, line_of(step.channel), Kind::kRecv});
      break;
    case Op::kRelease:
      actions.push_back({0, line_of(step.channel), Kind::kRelease});
      break;
    case Op::kCounts:
      actions.push_back({0, 0, Kind::kCounts});
      break;
    case Op::kWait:
      append_wait(lane, step, actions);
      break;
    case Op::kCopy:
    case Op::kReduce:
    case Op::kCall:
      append_work(step, actions);
      break;
    case Op::kNative:
      append_native(step, actions);
      break;
  }
}

void TimelineReader::append_wait(std::int32_t lane, const Step& step, Actions& actions) {
  const std::int64_t other = std::int64_t{lanes_[static_cast<std::size_t>(lane)].first_lane} + step.lane;
  if (other < 0 || static_cast<std::size_t>(other) >= lanes_.size() ||
      !lanes_[static_cast<std::size_t>(other)].is_awaited) {
    refuse(fmt::format("timeline: lane {} waits for lane {}, which is not said to be awaited", lane, other));
  }
  actions.push_back({0, static_cast<std::int32_t>(other), Action::Kind::kWait});
  actions.push_back({0, step.step, Action::Kind::kStep});
}

void TimelineReader::append_work(const Step& step, Actions& actions) {
  const Plan& part = *part_;
  const std::size_t work = actions.size();
  actions.emplace_back();
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::size_t length = 0;
  for (const Operand& destination : part.destinations(step)) {
    const Buffer& buffer = part.buffer(destination.buffer);
    length = length_of(buffer.pack, destination.chunks);
    const std::uint64_t bytes = length * size_of(buffer.element);
    written += bytes;
    if (buffer.role == Role::kSlot) append_send(buffer, bytes, actions);
  }
  for (const Operand& operand : part.sources(step)) {
    const Buffer& buffer = part.buffer(operand.buffer);
    length = length_of(buffer.pack, operand.chunks);
    read += length * size_of(buffer.element);
  }
  DeviceCost& device = cost_.devices[static_cast<std::size_t>(step.device)];
  device.bytes_read += read;
  device.bytes_written += written;
  if (step.op == Op::kReduce) device.additions += length * (step.num_sources - 1u);
  ++cost_.steps;
  actions[work].seconds = constants_.step + constants_.gamma * static_cast<double>(read + written);
  actions[work].number = static_cast<std::int32_t>(actions.size() - work - 1);
}

void TimelineReader::append_native(const Step& step, Actions& actions) {
  const Plan& part = *part_;
  const std::int32_t group = group_of(step.group);
  const std::vector<std::int32_t>& devices = part.group(step.group).devices;
  const Operand& any = part.operands[step.first_operand];
  const Buffer& buffer = part.buffer(any.buffer);
  const std::uint64_t length = length_of(buffer.pack, any.chunks);
  const std::uint64_t bytes = length * size_of(buffer.element);
  const bool adds = step.collective != Collective::kBroadcast;
  for (const Operand& operand : part.destinations(step)) {
    cost_.devices[static_cast<std::size_t>(part.buffer(operand.buffer).device)].bytes_written += bytes;
  }
  for (const Operand& operand : part.sources(step)) {
    DeviceCost& device = cost_.devices[static_cast<std::size_t>(part.buffer(operand.buffer).device)];
    device.bytes_read += bytes;
    if (adds) device.additions += length * (devices.size() - 1) / devices.size();
  }
  // Bytes that each device sends and, if it is to be fast, all of them at once.
  const double turns = step.collective == Collective::kAllReduce ? 2 : 1;
  const auto others = static_cast<double>(devices.size() - 1);
  const double sent = step.collective == Collective::kAllReduce
                          ? turns * others / static_cast<double>(devices.size()) * static_cast<double>(bytes)
                          : static_cast<double>(others > 0 ? bytes : 0);
  ++cost_.steps;
  ++cost_.native.steps;
  if (step.device == devices.front()) {  // one of the ranks counts for all
    cost_.native.bytes += static_cast<std::uint64_t>(turns) * (devices.size() - 1) * bytes;
  }
  const auto hops = static_cast<double>(std::bit_width(devices.size() - 1));
  const bool is_inside = ranks_of_group(group) == 1;
  const LinkConstants& link = is_inside ? constants_.inside : constants_.across;
  const std::uint64_t in_memory =
      (std::uint64_t{step.num_destinations} + step.num_sources + (is_inside ? 0 : 2)) * bytes;
  const double seconds = 2 * constants_.step + link.latency * turns * hops + link.seconds_per_byte * sent +
                         constants_.gamma * static_cast<double>(in_memory);
  actions.push_back({seconds, group, Action::Kind::kNative});
}

std::int32_t TimelineReader::group_of(std::int32_t group) {
  const Plan& part = *part_;
  const std::vector<std::int32_t>& devices = part.group(group).devices;
  const auto [entry, is_new] =
      group_numbers_.emplace(devices, static_cast<std::int32_t>(group_ranks_.size()));
  if (is_new) {
    std::set<std::int32_t> ranks;
    for (const std::int32_t device : devices) ranks.insert(part.rank_of(device));
    group_ranks_.push_back(ranks.size());
  }
  return entry->second;
}

void TimelineReader::append_send(const Buffer& slot, std::uint64_t bytes, Actions& actions) {
  const std::int32_t line = line_of(slot.index);
  const LineEnds& ends = lines_[static_cast<std::size_t>(line)];
  const bool is_inside = ends.from_rank == ends.to_rank;
  const LinkConstants& link = is_inside ? constants_.inside : constants_.across;
  LinkCost& level = is_inside ? cost_.inside : cost_.across;
  ++level.messages;
  level.bytes += bytes;
  const std::int32_t receiver = part_->channel(slot.index).to;
  cost_.devices[static_cast<std::size_t>(slot.device)].bytes_sent += bytes;
  cost_.devices[static_cast<std::size_t>(receiver)].bytes_received += bytes;
  actions.push_back({link.seconds_per_byte * static_cast<double>(bytes), line, Action::Kind::kSend});
}

std::int32_t TimelineReader::line_of(std::int32_t channel) {
  const Channel& wanted = part_->channel(channel);
  KnownLine& known = (*known_)[static_cast<std::size_t>(channel)];
  if (known.channel == wanted) return known.line;
  const auto [entry, is_new] = line_numbers_.emplace(wanted, static_cast<std::int32_t>(lines_.size()));
  if (is_new) lines_.push_back({part_->rank_of(wanted.from), part_->rank_of(wanted.to)});
  known = {wanted, entry->second};
  return entry->second;
}

std::size_t TimelineReader::length_of(std::int32_t pack, Chunks chunks) {
  const auto number = static_cast<std::size_t>(pack);
  if (number >= ends_.size() || ends_[number].empty()) measure(pack);
  const std::vector<std::size_t>& ends = ends_[number];
  return ends[std::size_t{chunks.first} + chunks.count] - ends[chunks.first];
}

void TimelineReader::measure(std::int32_t pack) {
  const Plan& part = *part_;
  if (ends_.size() < part.packs.size()) ends_.resize(part.packs.size());
  const std::uint32_t chunks = num_chunks(part.pack(pack).split);
  std::vector<std::size_t> ends;
  ends.reserve(std::size_t{chunks} + 1);
  ends.push_back(0);
  for (std::uint32_t i = 0; i < chunks; ++i) {
    ends.push_back(ends.back() + extent_of(part, sizes_, pack, {i, 1}).length);
  }
  ends_[static_cast<std::size_t>(pack)] = std::move(ends);
}

}  // namespace onesum::plan
