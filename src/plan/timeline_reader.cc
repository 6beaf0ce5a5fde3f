#include "plan/timeline_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

constexpr std::size_t kStepsAtATime = 96;

}  // namespace

TimelineReader::TimelineReader(std::span<const TimelineLane> lanes, const Sizes& sizes,
                               const CostConstants& constants)
    : lanes_(lanes), sizes_(sizes), constants_(constants), sources_(lanes.size()) {}

std::span<const Action> TimelineReader::read(std::int32_t lane) {
  Source& source = sources_[static_cast<std::size_t>(lane)];
  source.actions.clear();
  if (source.stretch.steps.empty() && !fetch(lane, source)) return {};
  const std::size_t count = std::min(source.stretch.steps.size(), kStepsAtATime);
  for (const Step& step : source.stretch.steps.first(count)) append(lane, source, step);
  source.stretch.steps = source.stretch.steps.subspan(count);
  return source.actions;
}

// The next stretch that has steps; false: the lane ends.
bool TimelineReader::fetch(std::int32_t lane, Source& source) {
  const Plan* before = source.stretch.part;
  do {
    if (!lanes_[static_cast<std::size_t>(lane)].stream->next(source.stretch)) return false;
  } while (source.stretch.steps.empty());
  const Plan& part = *source.stretch.part;
  if (before != &part) {
    std::unique_ptr<std::vector<KnownLine>>& lines = known_lines_[&part];
    if (!lines) lines = std::make_unique<std::vector<KnownLine>>();
    source.lines = lines.get();
  }
  if (source.lines->size() < part.channels.size()) source.lines->resize(part.channels.size());
  if (cost_.devices.size() < part.device_rank.size()) cost_.devices.resize(part.device_rank.size());
  return true;
}

void TimelineReader::append(std::int32_t lane, Source& source, const Step& step) {
  using Kind = Action::Kind;
  switch (step.op) {
    case Op::kRecv:
      source.actions.push_back({0, line_of(source, step.channel), Kind::kRecv});
      break;
    case Op::kRelease:
      source.actions.push_back({0, line_of(source, step.channel), Kind::kRelease});
      break;
    case Op::kCounts:
      source.actions.push_back({0, 0, Kind::kCounts});
      break;
    case Op::kWait: {
      const std::int64_t other = std::int64_t{lanes_[static_cast<std::size_t>(lane)].first_lane} + step.lane;
      if (other < 0 || static_cast<std::size_t>(other) >= lanes_.size() ||
          !lanes_[static_cast<std::size_t>(other)].is_awaited) {
        refuse(
            fmt::format("timeline: lane {} waits for lane {}, which is not said to be awaited", lane, other));
      }
      source.actions.push_back({0, static_cast<std::int32_t>(other), Kind::kWait});
      source.actions.push_back({0, step.step, Kind::kStep});
      break;
    }
    case Op::kCopy:
    case Op::kReduce:
    case Op::kCall:
      append_work(source, step);
      break;
  }
}

void TimelineReader::append_work(Source& source, const Step& step) {
  const Plan& part = *source.stretch.part;
  const std::size_t work = source.actions.size();
  source.actions.emplace_back();
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::size_t length = 0;
  for (const Operand& destination : part.destinations(step)) {
    const Buffer& buffer = part.buffer(destination.buffer);
    length = length_of(part, buffer.pack, destination.chunks);
    const std::uint64_t bytes = length * size_of(buffer.element);
    written += bytes;
    if (buffer.role == Role::kSlot) append_send(source, buffer, bytes);
  }
  for (const Operand& operand : part.sources(step)) {
    const Buffer& buffer = part.buffer(operand.buffer);
    length = length_of(part, buffer.pack, operand.chunks);
    read += length * size_of(buffer.element);
  }
  DeviceCost& device = cost_.devices[static_cast<std::size_t>(step.device)];
  device.bytes_read += read;
  device.bytes_written += written;
  if (step.op == Op::kReduce) device.additions += length * (step.num_sources - 1u);
  ++cost_.steps;
  source.actions[work].seconds = constants_.step + constants_.gamma * static_cast<double>(read + written);
  source.actions[work].number = static_cast<std::int32_t>(source.actions.size() - work - 1);
}

void TimelineReader::append_send(Source& source, const Buffer& slot, std::uint64_t bytes) {
  const std::int32_t line = line_of(source, slot.index);
  const LineEnds& ends = lines_[static_cast<std::size_t>(line)];
  const bool is_inside = ends.from_rank == ends.to_rank;
  const LinkConstants& link = is_inside ? constants_.inside : constants_.across;
  LinkCost& level = is_inside ? cost_.inside : cost_.across;
  ++level.messages;
  level.bytes += bytes;
  const std::int32_t receiver = source.stretch.part->channel(slot.index).to;
  cost_.devices[static_cast<std::size_t>(slot.device)].bytes_sent += bytes;
  cost_.devices[static_cast<std::size_t>(receiver)].bytes_received += bytes;
  source.actions.push_back({link.seconds_per_byte * static_cast<double>(bytes), line, Action::Kind::kSend});
}

std::int32_t TimelineReader::line_of(Source& source, std::int32_t channel) {
  const Plan& part = *source.stretch.part;
  const Channel& wanted = part.channel(channel);
  KnownLine& known = (*source.lines)[static_cast<std::size_t>(channel)];
  if (known.channel == wanted) return known.line;
  const auto [entry, is_new] = line_numbers_.emplace(wanted, static_cast<std::int32_t>(lines_.size()));
  if (is_new) lines_.push_back({part.rank_of(wanted.from), part.rank_of(wanted.to)});
  known = {wanted, entry->second};
  return entry->second;
}

std::size_t TimelineReader::length_of(const Plan& part, std::int32_t pack, Chunks chunks) {
  const auto number = static_cast<std::size_t>(pack);
  if (number >= ends_.size() || ends_[number].empty()) measure(part, pack);
  const std::vector<std::size_t>& ends = ends_[number];
  return ends[std::size_t{chunks.first} + chunks.count] - ends[chunks.first];
}

void TimelineReader::measure(const Plan& part, std::int32_t pack) {
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
