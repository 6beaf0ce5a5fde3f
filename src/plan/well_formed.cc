#include "plan/well_formed.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "plan/channel_hash.h"
#include "plan/groups.h"
#include "plan/refuse.h"

namespace onesum::plan {

namespace {

template <class... Args>
void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) refuse(fmt::format(format, std::forward<Args>(args)...));
}

bool is_index(std::int64_t number, std::size_t size) {
  return number >= 0 && static_cast<std::uint64_t>(number) < size;
}

bool is_inside(const Chunks& run, const Chunks& window) {
  const std::uint64_t end = std::uint64_t{run.first} + run.count;
  return run.count > 0 && run.first >= window.first && end <= std::uint64_t{window.first} + window.count;
}

bool is_element(Element element) { return static_cast<int>(element) < kNumElements; }

void check_name(std::string_view what, std::string_view name) {
  require(name.size() <= kMaxNameLength, "{} has {} characters, at most {} are allowed", what, name.size(),
          kMaxNameLength);
  const bool printable = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  require(printable, "{} holds a character that is not printable ASCII", what);
  require(name.empty() || (name.front() != ' ' && name.back() != ' '),
          "{} \"{}\" begins or ends with a space", what, name);
}

void check_split(std::size_t pack, const Pack& value) {
  require(value.split.size() <= kMaxSplitLevels, "pack {}: {} levels of splitting, at most {} are allowed",
          pack, value.split.size(), kMaxSplitLevels);
  std::uint64_t chunks = 1;
  for (const SplitLevel& level : value.split) {
    require(level.rule <= SplitRule::kCounts, "pack {}: unknown rule of splitting", pack);
    require(level.parts > 0, "pack {}: split into 0 parts", pack);
    chunks *= level.parts;
    require(chunks <= kMaxChunks, "pack {}: more than {} chunks", pack, kMaxChunks);
    if (level.rule != SplitRule::kCounts) continue;
    require(value.split.size() == 1, "pack {}: a split by counts stands alone", pack);
    require(level.parts == value.replicas.size(), "pack {}: split by counts into {} parts for {} replicas",
            pack, level.parts, value.replicas.size());
  }
}

void check_pack(const Plan& plan, std::size_t number) {
  const Pack& pack = plan.packs[number];
  require(pack.contract <= Contract::kScatter, "pack {}: unknown contract", number);
  require(is_element(pack.accumulator) && is_element(pack.output), "pack {}: unknown element type", number);
  require(static_cast<int>(pack.combine) < kNumCombines, "pack {}: unknown operation", number);
  require(pack.contract != Contract::kConcatenate || pack.combine == Combine::kSum,
          "pack {}: concatenates by {}, which combines nothing", number, to_string(pack.combine));
  require(pack.divisor >= 1, "pack {}: divisor {}, expected at least 1", number, pack.divisor);
  require(!pack.replicas.empty(), "pack {}: no replicas", number);
  for (const std::int32_t device : pack.replicas) {
    require(is_index(device, plan.device_rank.size()), "pack {}: replica on device {} of {}", number, device,
            plan.device_rank.size());
  }
  for (const std::int32_t device : pack.destinations) {
    require(is_index(device, plan.device_rank.size()), "pack {}: destination on device {} of {}", number,
            device, plan.device_rank.size());
  }
  check_split(number, pack);
}

void check_channels(const Plan& plan, Place& place) {
  std::unordered_set<Channel, ChannelHash> seen;
  seen.reserve(plan.channels.size());
  for (std::size_t i = 0; i < plan.channels.size(); ++i) {
    place = {Place::Kind::kChannel, i, 0};
    const Channel& channel = plan.channels[i];
    require(is_index(channel.from, plan.device_rank.size()) && is_index(channel.to, plan.device_rank.size()),
            "channel {}: from device {} to device {}, there are {} devices", i, channel.from, channel.to,
            plan.device_rank.size());
    require(channel.from != channel.to, "channel {}: from device {} to itself", i, channel.from);
    require(channel.number >= 0, "channel {}: number {}, expected at least 0", i, channel.number);
    require(seen.insert(channel).second,
            "channel {}: there is another one from device {} to device {} with number {}", i, channel.from,
            channel.to, channel.number);
  }
}

void check_groups(const Plan& plan, Place& place) {
  std::set<std::vector<std::int32_t>> seen;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    place = {Place::Kind::kGroup, i, 0};
    const std::vector<std::int32_t>& devices = plan.groups[i].devices;
    require(!devices.empty(), "g{}: no devices", i);
    for (const std::int32_t device : devices) {
      require(is_index(device, plan.device_rank.size()), "g{}: device {} of {}", i, device,
              plan.device_rank.size());
    }
    const bool ascends = std::ranges::adjacent_find(devices, std::ranges::greater_equal()) == devices.end();
    require(ascends, "g{}: expected its devices in ascending order, none of them twice", i);
    require(seen.insert(devices).second, "g{}: there is another group of the same devices", i);
  }
}

void check_buffer(const Plan& plan, std::size_t number) {
  const Buffer& buffer = plan.buffers[number];
  require(is_element(buffer.element), "b{}: unknown element type", number);
  require(is_index(buffer.device, plan.device_rank.size()), "b{}: on device {} of {}", number, buffer.device,
          plan.device_rank.size());
  require(is_index(buffer.pack, plan.packs.size()), "b{}: of pack {} of {}", number, buffer.pack,
          plan.packs.size());
  const Pack& pack = plan.pack(buffer.pack);
  require(is_inside(buffer.window, {0, num_chunks(pack.split)}),
          "b{}: a window of {} chunks from chunk {}, pack {} has {}", number, buffer.window.count,
          buffer.window.first, buffer.pack, num_chunks(pack.split));
  std::int32_t device = buffer.device;  // where it must be
  switch (buffer.role) {
    case Role::kInput:
    case Role::kInOut:
      require(is_index(buffer.index, pack.replicas.size()), "b{}: replica {} of {}", number, buffer.index,
              pack.replicas.size());
      device = pack.replicas[static_cast<std::size_t>(buffer.index)];
      break;
    case Role::kOutput:
      require(is_index(buffer.index, pack.destinations.size()), "b{}: destination {} of {}", number,
              buffer.index, pack.destinations.size());
      device = pack.destinations[static_cast<std::size_t>(buffer.index)];
      break;
    case Role::kTemp:
      require(buffer.index >= 0, "b{}: temporary number {}", number, buffer.index);
      break;
    case Role::kSlot:
    case Role::kView:
      require(is_index(buffer.index, plan.channels.size()), "b{}: channel {} of {}", number, buffer.index,
              plan.channels.size());
      device = buffer.role == Role::kSlot ? plan.channel(buffer.index).from : plan.channel(buffer.index).to;
      break;
    default:
      refuse(fmt::format("b{}: unknown role", number));
  }
  require(buffer.device == device, "b{}: on device {}, expected {}", number, buffer.device, device);
}

struct Where {
  std::size_t lane;
  std::size_t step;
  std::string_view op;
};

// The same of a step; its name is put together only if it is needed.
template <class... Args>
void require(const Where& where, bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (holds) return;
  refuse(fmt::format("lane {} step {} ({}): ", where.lane, where.step, where.op) +
         fmt::format(format, std::forward<Args>(args)...));
}

// Sources pushed and merged as `merges` says leave exactly one sum and never lack one.
void check_merges(const Where& where, std::span<const Operand> sources) {
  std::size_t depth = 0;
  for (const Operand& source : sources) {
    ++depth;
    require(where, source.merges < depth, "{} merges with {} entries on the stack", source.merges, depth);
    depth -= source.merges;
  }
  require(where, depth == 1, "the merges leave {} sums, expected 1", depth);
}

void check_operands(const Plan& plan, const Where& where, const Step& step) {
  for (const Operand& operand :
       std::span(plan.operands)
           .subspan(step.first_operand, std::size_t{step.num_destinations} + step.num_sources)) {
    require(where, is_index(operand.buffer, plan.buffers.size()), "b{} does not exist", operand.buffer);
    const Chunks& window = plan.buffer(operand.buffer).window;
    require(where, is_inside(operand.chunks, window), "{} chunks of b{} from chunk {}, it has {} from {}",
            operand.chunks.count, operand.buffer, operand.chunks.first, window.count, window.first);
  }
  for (const Operand& destination : plan.destinations(step)) {
    require(where, destination.merges == 0, "a destination has merges");
  }
  if (step.op == Op::kReduce) return check_merges(where, plan.sources(step));
  for (const Operand& source : plan.sources(step)) {
    require(where, source.merges == 0, "a source has merges");
  }
}

// What each operation has.
struct Form {
  std::string_view name;
  std::size_t max_destinations;
  std::size_t max_sources;
  bool has_arithmetic;
  bool has_channel;
  bool may_lack = false;  // destinations or sources, not both
};
constexpr std::size_t kMany = std::numeric_limits<std::uint16_t>::max();
constexpr Form kForms[] = {
    {"copy", kMany, 1, false, false}, {"reduce", kMany, kMany, true, false},
    {"recv", 1, 0, false, true},      {"release", 0, 0, false, true},
    {"call", 1, kMany, true, false},  {"wait", 0, 0, false, false},
    {"counts", 0, 0, false, false},   {"native", kMany, kMany, false, false, true},
};

// A group on native steps, on no others; and where those run.
void check_group(const Plan& plan, const Groups& groups, const Where& where, const Step& step) {
  require(where, step.collective <= Collective::kBroadcast, "unknown collective");
  if (step.op != Op::kNative) {
    require(where, step.group == -1 && step.collective == Collective::kAllReduce,
            "names a group or a collective, which only native does");
    return;
  }
  require(where, is_index(step.group, plan.groups.size()), "g{} does not exist", step.group);
  const std::int32_t rank = plan.lanes[where.lane].rank;
  const Member* member = groups.find(step.group, rank);
  require(where, member != nullptr, "rank {} has no device in g{}", rank, step.group);
  require(where, step.device == member->device, "on device {}, expected {}, the first of rank {} in g{}",
          step.device, member->device, rank, step.group);
}

void check_step(const Plan& plan, const Groups& groups, std::size_t lane, std::size_t number) {
  const Step& step = plan.lanes[lane].steps[number];
  require(step.op <= Op::kNative, "lane {} step {}: unknown operation", lane, number);
  const Form& form = kForms[static_cast<std::size_t>(step.op)];
  const Where where{lane, number, form.name};
  require(where,
          step.num_destinations <= form.max_destinations &&
              ((step.num_destinations > 0) == (form.max_destinations > 0) ||
               (form.may_lack && step.num_sources > 0)),
          "{} destinations", step.num_destinations);
  require(where,
          step.num_sources <= form.max_sources && ((step.num_sources > 0) == (form.max_sources > 0) ||
                                                   (form.may_lack && step.num_destinations > 0)),
          "{} sources", step.num_sources);
  check_operands(plan, where, step);

  require(where, is_index(step.device, plan.device_rank.size()), "on device {} of {}", step.device,
          plan.device_rank.size());
  require(where, is_element(step.accumulator) && step.divisor >= 1, "divisor {} or an unknown element type",
          step.divisor);
  require(where, form.has_arithmetic || (step.accumulator == Element::kFloat32 && step.divisor == 1),
          "an accumulator or a divisor where there is no arithmetic");
  require(where, static_cast<int>(step.combine) < kNumCombines, "an unknown way to combine");
  require(where, step.combine == Combine::kSum || (step.op == Op::kReduce && step.num_sources > 1),
          "combines by {} where there is nothing to combine", to_string(step.combine));
  if (step.op == Op::kWait) {
    require(where,
            is_index(step.lane, plan.lanes.size()) && is_index(step.step, plan.lane(step.lane).steps.size()),
            "for step {} of lane {}, which does not exist", step.step, step.lane);
    require(where, step.device == 0, "a wait has no device");
  } else {
    require(where, step.lane == -1 && step.step == -1, "waits for a step, which only wait does");
  }
  if (step.op == Op::kCounts) {
    require(where, is_index(step.pack, plan.packs.size()), "pack {} does not exist", step.pack);
    require(where, is_by_counts(plan.pack(step.pack).split), "pack {} is not split by counts", step.pack);
    require(where, step.device == 0, "counts has no device");
  } else {
    require(where, step.pack == -1, "names a pack, which only counts does");
  }
  check_group(plan, groups, where, step);
  if (!form.has_channel) {
    require(where, step.channel == -1, "has a channel");
    return;
  }
  require(where, is_index(step.channel, plan.channels.size()), "channel {} does not exist", step.channel);
  require(where, step.device == plan.channel(step.channel).to, "on device {}, channel {} ends on device {}",
          step.device, step.channel, plan.channel(step.channel).to);
  for (const Operand& view : plan.destinations(step)) {
    const Buffer& buffer = plan.buffer(view.buffer);
    require(where, buffer.role == Role::kView && buffer.index == step.channel, "b{} is no view of channel {}",
            view.buffer, step.channel);
  }
}

// Operands follow each other in the order of lanes and steps, without gaps.
void check_layout(const Plan& plan) {
  std::size_t expected = 0;
  for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) {
    for (std::size_t number = 0; number < plan.lanes[lane].steps.size(); ++number) {
      const Step& step = plan.lanes[lane].steps[number];
      require(step.first_operand == expected, "lane {} step {}: operands begin at {}, expected {}", lane,
              number, step.first_operand, expected);
      expected += std::size_t{step.num_destinations} + step.num_sources;
    }
  }
  require(plan.operands.size() == expected, "{} operands, the steps have {}", plan.operands.size(), expected);
}

}  // namespace

void check_well_formed(const Plan& plan, Place* place) {
  Place unused;
  Place& at = place != nullptr ? *place : unused;
  at = {};
  check_name("the algorithm's name", plan.algorithm);
  check_name("the order's name", plan.order);
  constexpr std::size_t kMaxNumber = std::numeric_limits<std::int32_t>::max();
  require(plan.device_rank.size() <= kMaxNumber && plan.packs.size() <= kMaxNumber &&
              plan.channels.size() <= kMaxNumber && plan.groups.size() <= kMaxNumber &&
              plan.buffers.size() <= kMaxNumber && plan.lanes.size() <= kMaxNumber &&
              plan.operands.size() <= std::numeric_limits<std::uint32_t>::max(),
          "more things than numbers for them");
  for (std::size_t i = 0; i < plan.device_rank.size(); ++i) {
    require(is_index(plan.device_rank[i], kMaxRank + 1), "device {}: rank {}, expected 0 to {}", i,
            plan.device_rank[i], kMaxRank);
  }
  check_layout(plan);
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    at = {Place::Kind::kPack, i, 0};
    check_pack(plan, i);
  }
  check_channels(plan, at);
  check_groups(plan, at);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    at = {Place::Kind::kBuffer, i, 0};
    check_buffer(plan, i);
  }
  const Groups groups(plan);
  for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) {
    at = {Place::Kind::kLane, lane, 0};
    require(is_index(plan.lanes[lane].rank, kMaxRank + 1), "lane {}: rank {}, expected 0 to {}", lane,
            plan.lanes[lane].rank, kMaxRank);
    for (std::size_t step = 0; step < plan.lanes[lane].steps.size(); ++step) {
      at = {Place::Kind::kStep, lane, step};
      check_step(plan, groups, lane, step);
    }
  }
}

}  // namespace onesum::plan
