// The parsing half of plan/text.h.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "plan/groups.h"
#include "plan/refuse.h"
#include "plan/text.h"
#include "plan/text_line.h"
#include "plan/well_formed.h"

namespace onesum::plan {

namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxOperands = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint8_t kMaxMerges = std::numeric_limits<std::uint8_t>::max();

// Reads lines into a plan. What a line alone can tell is refused at once, the rest by check_well_formed,
// whose verdict gets the number of the line it concerns.
class Parser {
 public:
  Plan parse(std::string_view text);

 private:
  void read_line(TextLine& line);
  void read_header(TextLine& line);
  void read_thing(TextLine& line);
  void read_pack(TextLine& line);
  void read_channel(TextLine& line);
  void read_group(TextLine& line);
  void read_buffer(TextLine& line);
  void read_role(TextLine& line, Buffer& buffer);
  void read_step(TextLine& line);
  void read_copy(TextLine& line, Step& step);
  void read_reduce(TextLine& line, Step& step);
  void read_call(TextLine& line, Step& step);
  void read_native(TextLine& line, Step& step);
  void read_channel_step(TextLine& line, Step& step);

  std::int32_t take_device(TextLine& line) const;
  Chunks take_run(TextLine& line) const;
  Operand take_operand(TextLine& line) const;
  void take_destinations(TextLine& line, Step& step);
  void take_sum(TextLine& line, Step& step);
  void add_source(TextLine& line, Step& step, const Operand& source);

  std::size_t line_of(const Place& place) const;

  Plan plan_;
  std::optional<Groups> groups_;  // from the first native step on
  std::size_t header_lines_ = 0;
  std::size_t line_number_ = 0;
  std::vector<std::size_t> pack_lines_, channel_lines_, group_lines_, buffer_lines_, lane_lines_;
  std::vector<std::vector<std::size_t>> step_lines_;
};

Plan Parser::parse(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line_number_;
    TextLine line(line_number_, text.substr(begin, end - begin));
    if (!line.at_end() && line.peek() != "#") read_line(line);
    begin = end + 1;
  }
  if (header_lines_ < 3) {
    refuse(fmt::format("line {}: found the end of the text, expected the lines plan, order and devices",
                       line_number_ + 1));
  }
  Place place;
  try {
    check_well_formed(plan_, &place);
  } catch (const Error& error) {
    refuse(fmt::format("line {}: {}", line_of(place), error.what()));
  }
  return std::move(plan_);
}

std::size_t Parser::line_of(const Place& place) const {
  switch (place.kind) {
    case Place::Kind::kPack:
      return pack_lines_[place.number];
    case Place::Kind::kChannel:
      return channel_lines_[place.number];
    case Place::Kind::kGroup:
      return group_lines_[place.number];
    case Place::Kind::kBuffer:
      return buffer_lines_[place.number];
    case Place::Kind::kLane:
      return lane_lines_[place.number];
    case Place::Kind::kStep:
      return step_lines_[place.number][place.step];
    case Place::Kind::kPlan:
      break;
  }
  return 1;
}

void Parser::read_line(TextLine& line) {
  if (header_lines_ < 3) {
    read_header(line);
  } else if (line.take_if("lane")) {
    line.expect("of");
    line.expect("rank");
    const auto rank = static_cast<std::int32_t>(line.take_number("a rank", 0, kMaxRank));
    plan_.lanes.push_back({rank, {}});
    lane_lines_.push_back(line_number_);
    step_lines_.emplace_back();
  } else if (plan_.lanes.empty()) {
    read_thing(line);
  } else {
    read_step(line);
  }
  line.expect_end();
}

void Parser::read_header(TextLine& line) {
  switch (header_lines_++) {
    case 0:
      line.expect("plan");
      plan_.algorithm = line.take_rest();
      break;
    case 1:
      line.expect("order");
      plan_.order = line.take_rest();
      break;
    default:
      line.expect("devices");
      while (!line.at_end()) {
        plan_.device_rank.push_back(static_cast<std::int32_t>(line.take_number("a rank", 0, kMaxRank)));
      }
  }
}

// The number that must be the next of its kind.
void take_next(TextLine& line, char letter, std::size_t next) {
  const std::string expected = fmt::format("{}{}", letter, next);
  line.expect(expected);
}

void Parser::read_thing(TextLine& line) {
  if (line.is_reference('p') && plan_.channels.empty() && plan_.groups.empty() && plan_.buffers.empty()) {
    take_next(line, 'p', plan_.packs.size());
    read_pack(line);
  } else if (line.is_reference('c') && plan_.groups.empty() && plan_.buffers.empty()) {
    take_next(line, 'c', plan_.channels.size());
    read_channel(line);
  } else if (line.is_reference('g') && plan_.buffers.empty()) {
    take_next(line, 'g', plan_.groups.size());
    read_group(line);
  } else if (line.is_reference('b')) {
    take_next(line, 'b', plan_.buffers.size());
    read_buffer(line);
  } else {
    line.fail(
        "packs (p0 ...), then channels (c0 ...), then groups (g0 ...), then buffers (b0 ...), then lanes");
  }
}

std::int32_t Parser::take_device(TextLine& line) const {
  return static_cast<std::int32_t>(
      line.take_number("a device", 0, static_cast<std::int64_t>(plan_.device_rank.size()) - 1));
}

// The name of what is no sum: sums are written without one.
Combine take_combine(TextLine& line) {
  const std::optional<Combine> combine = parse_combine(line.peek());
  if (!combine || *combine == Combine::kSum) line.fail("product, min, max, bitand, bitor or bitxor");
  line.take();
  return *combine;
}

void Parser::read_pack(TextLine& line) {
  Pack pack;
  if (line.take_if("concatenate")) {
    pack.contract = Contract::kConcatenate;
  } else if (line.take_if("scatter")) {
    pack.contract = Contract::kScatter;
  } else if (!line.take_if("reduce")) {
    line.fail("\"reduce\", \"concatenate\" or \"scatter\"");
  }
  if (line.take_if("by")) pack.combine = take_combine(line);
  pack.accumulator = line.take_element();
  line.expect("to");
  pack.output = line.take_element();
  if (line.take_if("/")) pack.divisor = line.take_number("a divisor", 1, kMaxInt64);
  line.expect(";");
  if (line.take_if("split")) {
    while (line.peek() != ";" && !line.at_end()) {
      SplitLevel level;
      if (line.take_if("padded")) {
        level.rule = SplitRule::kPadded;
      } else if (line.take_if("counts")) {
        level.rule = SplitRule::kCounts;
      } else if (!line.take_if("ragged")) {
        line.fail("\"ragged\", \"padded\" or \"counts\"");
      }
      level.parts = static_cast<std::uint32_t>(line.take_number("a number of parts", 1, kMaxChunks));
      pack.split.push_back(level);
    }
    line.expect(";");
  }
  line.expect("replicas");
  while (!line.take_if(";")) pack.replicas.push_back(take_device(line));
  line.expect("destinations");
  while (!line.at_end()) pack.destinations.push_back(take_device(line));
  plan_.packs.push_back(std::move(pack));
  pack_lines_.push_back(line_number_);
}

void Parser::read_channel(TextLine& line) {
  Channel channel;
  channel.from = take_device(line);
  line.expect("->");
  channel.to = take_device(line);
  if (line.take_if("number")) {
    channel.number = static_cast<std::int32_t>(line.take_number("a number", 0, kMaxInt32));
  }
  plan_.channels.push_back(channel);
  channel_lines_.push_back(line_number_);
}

void Parser::read_group(TextLine& line) {
  Group group;
  while (!line.at_end()) group.devices.push_back(take_device(line));
  plan_.groups.push_back(std::move(group));
  group_lines_.push_back(line_number_);
}

void Parser::read_role(TextLine& line, Buffer& buffer) {
  constexpr std::array kRoles = {"input", "output", "inout", "temp", "slot", "view"};
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (!line.take_if(kRoles[i])) continue;
    buffer.role = static_cast<Role>(i);
    if (buffer.role == Role::kSlot || buffer.role == Role::kView) {
      buffer.index = line.take_reference('c', plan_.channels.size());
    } else {
      buffer.index = static_cast<std::int32_t>(line.take_number("a number", 0, kMaxInt32));
    }
    return;
  }
  line.fail("input, output, inout, temp, slot or view");
}

void Parser::read_buffer(TextLine& line) {
  Buffer buffer;
  read_role(line, buffer);
  line.expect("of");
  buffer.pack = line.take_reference('p', plan_.packs.size());
  line.expect("on");
  buffer.device = take_device(line);
  buffer.element = line.take_element();
  buffer.window = line.at_end() ? Chunks{0, num_chunks(plan_.pack(buffer.pack).split)} : take_run(line);
  plan_.buffers.push_back(buffer);
  buffer_lines_.push_back(line_number_);
}

Chunks Parser::take_run(TextLine& line) const {
  line.expect("[");
  const std::int64_t first = line.take_number("a chunk", 0, kMaxChunks - 1);
  std::int64_t last = first;
  if (line.take_if("..")) last = line.take_number("a chunk", first, kMaxChunks - 1);
  line.expect("]");
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first + 1)};
}

Operand Parser::take_operand(TextLine& line) const {
  Operand operand;
  operand.buffer = line.take_reference('b', plan_.buffers.size());
  operand.chunks = line.peek() == "[" ? take_run(line) : plan_.buffer(operand.buffer).window;
  return operand;
}

void Parser::read_step(TextLine& line) {
  Step step;
  step.first_operand = static_cast<std::uint32_t>(plan_.operands.size());
  if (line.take_if("copy")) {
    read_copy(line, step);
  } else if (line.take_if("reduce")) {
    read_reduce(line, step);
  } else if (line.take_if("call")) {
    read_call(line, step);
  } else if (line.peek() == "recv" || line.peek() == "release") {
    read_channel_step(line, step);
  } else if (line.take_if("wait")) {
    step.op = Op::kWait;
    line.expect("lane");
    step.lane = static_cast<std::int32_t>(line.take_number("a lane", 0, kMaxInt32));
    line.expect("step");
    step.step = static_cast<std::int32_t>(line.take_number("a step", 0, kMaxInt32));
  } else if (line.take_if("counts")) {
    step.op = Op::kCounts;
    step.pack = line.take_reference('p', plan_.packs.size());
  } else if (line.take_if("native")) {
    read_native(line, step);
  } else {
    line.fail("copy, reduce, recv, release, call, wait, counts, native or lane");
  }
  plan_.lanes.back().steps.push_back(step);
  step_lines_.back().push_back(line_number_);
}

void Parser::take_destinations(TextLine& line, Step& step) {
  line.expect(":");
  while (!line.take_if("=")) {
    if (step.num_destinations == kMaxOperands)
      line.fail(fmt::format("at most {} destinations", kMaxOperands));
    plan_.operands.push_back(take_operand(line));
    ++step.num_destinations;
  }
}

void Parser::add_source(TextLine& line, Step& step, const Operand& source) {
  if (step.num_sources == kMaxOperands) line.fail(fmt::format("at most {} sources", kMaxOperands));
  plan_.operands.push_back(source);
  ++step.num_sources;
}

void Parser::read_copy(TextLine& line, Step& step) {
  step.op = Op::kCopy;
  line.expect("on");
  step.device = take_device(line);
  take_destinations(line, step);
  add_source(line, step, take_operand(line));
}

void Parser::read_reduce(TextLine& line, Step& step) {
  step.op = Op::kReduce;
  line.expect("on");
  step.device = take_device(line);
  line.expect("in");
  step.accumulator = line.take_element();
  take_destinations(line, step);
  take_sum(line, step);
}

bool is_operator(std::string_view token) {
  return token == "+" || (parse_combine(token) && token != to_string(Combine::kSum));
}

// The operator between two sources; the first one is the step's.
void take_operator(TextLine& line, Step& step) {
  if (step.num_sources == 1 && is_operator(line.peek()) && line.peek() != "+") {
    step.combine = take_combine(line);
  } else {
    line.expect(step.combine == Combine::kSum ? "+" : to_string(step.combine));
  }
}

// A sum in parentheses, with an explicit stack: how many terms each open parenthesis has seen so far.
void Parser::take_sum(TextLine& line, Step& step) {
  std::vector<int> terms = {0};
  const auto merge = [&] {
    Operand& last = plan_.operands.back();
    if (last.merges == kMaxMerges) line.fail(fmt::format("at most {} additions that end here", kMaxMerges));
    ++last.merges;
  };
  while (true) {
    while (line.take_if("(")) terms.push_back(0);
    add_source(line, step, take_operand(line));
    ++terms.back();
    while (terms.size() > 1 && terms.back() == 2) {
      line.expect(")");
      merge();
      terms.pop_back();
      ++terms.back();
    }
    if (terms.size() == 1 && (terms.back() == 2 || !is_operator(line.peek()))) break;
    take_operator(line, step);
  }
  if (terms.back() == 2) {
    merge();
  } else if (line.take_if("/")) {
    step.divisor = line.take_number("a divisor", 1, kMaxInt64);
  }
}

void Parser::read_call(TextLine& line, Step& step) {
  step.op = Op::kCall;
  line.expect("on");
  step.device = take_device(line);
  line.expect("in");
  step.accumulator = line.take_element();
  take_destinations(line, step);
  line.expect("f");
  line.expect("(");
  do {
    add_source(line, step, take_operand(line));
  } while (line.take_if(","));
  line.expect(")");
  if (line.take_if("/")) step.divisor = line.take_number("a divisor", 1, kMaxInt64);
}

// It runs on the first device of the lane's rank; check_well_formed refuses a rank that has none.
void Parser::read_native(TextLine& line, Step& step) {
  constexpr std::array kCollectives = {"all_reduce", "reduce", "broadcast"};
  step.op = Op::kNative;
  std::size_t which = 0;
  while (which < kCollectives.size() && !line.take_if(kCollectives[which])) ++which;
  if (which == kCollectives.size()) line.fail("all_reduce, reduce or broadcast");
  step.collective = static_cast<Collective>(which);
  line.expect("over");
  step.group = line.take_reference('g', plan_.groups.size());
  if (!groups_) groups_.emplace(plan_);
  const Member* member = groups_->find(step.group, plan_.lanes.back().rank);
  if (member != nullptr) step.device = member->device;
  take_destinations(line, step);
  while (!line.at_end()) add_source(line, step, take_operand(line));
}

void Parser::read_channel_step(TextLine& line, Step& step) {
  step.op = line.take() == "recv" ? Op::kRecv : Op::kRelease;
  step.channel = line.take_reference('c', plan_.channels.size());
  step.device = plan_.channel(step.channel).to;
  if (step.op == Op::kRelease) return;
  line.expect(":");
  plan_.operands.push_back(take_operand(line));
  step.num_destinations = 1;
}

}  // namespace

Plan parse_text(std::string_view text) { return Parser().parse(text); }

}  // namespace onesum::plan
