// The printing half of plan/text.h.
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "plan/text.h"
#include "plan/well_formed.h"

namespace onesum::plan {

namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr std::array kContractNames = {"reduce", "concatenate", "scatter"};
constexpr std::array kRuleNames = {"ragged", "padded", "counts"};
constexpr std::array kRoleNames = {"input", "output", "inout", "temp", "slot", "view"};

constexpr std::array kCollectiveNames = {"all_reduce", "reduce", "broadcast"};

template <class Names, class Enum>
std::string_view name_of(const Names& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

void print_run(Out out, const Chunks& run) {
  if (run.count == 1) {
    fmt::format_to(out, "[{}]", run.first);
  } else {
    fmt::format_to(out, "[{}..{}]", run.first, run.first + run.count - 1);
  }
}

void print_pack(Out out, std::size_t number, const Pack& pack) {
  fmt::format_to(out, "p{} {} ", number, name_of(kContractNames, pack.contract));
  if (pack.combine != Combine::kSum) fmt::format_to(out, "by {} ", to_string(pack.combine));
  fmt::format_to(out, "{} to {}", to_string(pack.accumulator), to_string(pack.output));
  if (pack.divisor != 1) fmt::format_to(out, " / {}", pack.divisor);
  if (!pack.split.empty()) {
    fmt::format_to(out, "; split");
    for (const SplitLevel& level : pack.split) {
      fmt::format_to(out, " {} {}", name_of(kRuleNames, level.rule), level.parts);
    }
  }
  fmt::format_to(out, "; replicas");
  for (const std::int32_t device : pack.replicas) fmt::format_to(out, " {}", device);
  fmt::format_to(out, "; destinations");
  for (const std::int32_t device : pack.destinations) fmt::format_to(out, " {}", device);
  fmt::format_to(out, "\n");
}

void print_buffer(Out out, const Plan& plan, std::size_t number) {
  const Buffer& buffer = plan.buffers[number];
  const bool is_end = buffer.role == Role::kSlot || buffer.role == Role::kView;
  fmt::format_to(out, "b{} {} {}{} of p{} on {} {}", number, name_of(kRoleNames, buffer.role),
                 is_end ? "c" : "", buffer.index, buffer.pack, buffer.device, to_string(buffer.element));
  if (buffer.window != Chunks{0, num_chunks(plan.pack(buffer.pack).split)}) {
    fmt::format_to(out, " ");
    print_run(out, buffer.window);
  }
  fmt::format_to(out, "\n");
}

void print_operand(Out out, const Plan& plan, const Operand& operand) {
  fmt::format_to(out, "b{}", operand.buffer);
  if (operand.chunks != plan.buffer(operand.buffer).window) print_run(out, operand.chunks);
}

// How many parentheses open before each source. A merge joins the two topmost sums of the stack, each of
// which begins at a source; the joint one begins where the lower one did.
std::vector<std::size_t> opening_parentheses(std::span<const Operand> sources) {
  std::vector<std::size_t> opening(sources.size(), 0);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    begins.push_back(i);
    for (std::uint8_t merge = 0; merge < sources[i].merges; ++merge) {
      begins.pop_back();
      ++opening[begins.back()];
    }
  }
  return opening;
}

void print_sum(Out out, const Plan& plan, const Step& step) {
  const std::span<const Operand> sources = plan.sources(step);
  const std::vector<std::size_t> opening = opening_parentheses(sources);
  const std::size_t outermost = sources.size() > 1 && step.divisor == 1 ? 1 : 0;  // not written
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (i > 0) fmt::format_to(out, "{}", operator_of(step.combine));
    const std::size_t closing = sources[i].merges - (i + 1 == sources.size() ? outermost : 0);
    fmt::format_to(out, "{:(<{}}", "", opening[i] - (i == 0 ? outermost : 0));
    print_operand(out, plan, sources[i]);
    fmt::format_to(out, "{:)<{}}", "", closing);
  }
  if (step.divisor != 1) fmt::format_to(out, " / {}", step.divisor);
}

void print_call(Out out, const Plan& plan, const Step& step) {
  fmt::format_to(out, "f(");
  for (std::size_t i = 0; i < plan.sources(step).size(); ++i) {
    if (i > 0) fmt::format_to(out, ", ");
    print_operand(out, plan, plan.sources(step)[i]);
  }
  fmt::format_to(out, ")");
  if (step.divisor != 1) fmt::format_to(out, " / {}", step.divisor);
}

void print_destinations(Out out, const Plan& plan, const Step& step) {
  for (const Operand& destination : plan.destinations(step)) {
    print_operand(out, plan, destination);
    fmt::format_to(out, " ");
  }
  fmt::format_to(out, "= ");
}

void print_native(Out out, const Plan& plan, const Step& step) {
  fmt::format_to(out, "native {} over g{}: ", name_of(kCollectiveNames, step.collective), step.group);
  for (const Operand& destination : plan.destinations(step)) {
    print_operand(out, plan, destination);
    fmt::format_to(out, " ");
  }
  fmt::format_to(out, "=");
  for (const Operand& source : plan.sources(step)) {
    fmt::format_to(out, " ");
    print_operand(out, plan, source);
  }
}

void print_step(Out out, const Plan& plan, const Step& step) {
  switch (step.op) {
    case Op::kCopy:
      fmt::format_to(out, "copy on {}: ", step.device);
      print_destinations(out, plan, step);
      print_operand(out, plan, plan.sources(step).front());
      break;
    case Op::kReduce:
      fmt::format_to(out, "reduce on {} in {}: ", step.device, to_string(step.accumulator));
      print_destinations(out, plan, step);
      print_sum(out, plan, step);
      break;
    case Op::kCall:
      fmt::format_to(out, "call on {} in {}: ", step.device, to_string(step.accumulator));
      print_destinations(out, plan, step);
      print_call(out, plan, step);
      break;
    case Op::kRecv:
      fmt::format_to(out, "recv c{}: ", step.channel);
      print_operand(out, plan, plan.destinations(step).front());
      break;
    case Op::kRelease:
      fmt::format_to(out, "release c{}", step.channel);
      break;
    case Op::kWait:
      fmt::format_to(out, "wait lane {} step {}", step.lane, step.step);
      break;
    case Op::kCounts:
      fmt::format_to(out, "counts p{}", step.pack);
      break;
    case Op::kNative:
      print_native(out, plan, step);
      break;
  }
}

}  // namespace

std::string to_text(const Plan& plan) {
  check_well_formed(plan);
  std::string text;
  const Out out(text);
  fmt::format_to(out, "plan {}\norder {}\ndevices", plan.algorithm, plan.order);
  for (const std::int32_t rank : plan.device_rank) fmt::format_to(out, " {}", rank);
  fmt::format_to(out, "\n");
  for (std::size_t i = 0; i < plan.packs.size(); ++i) print_pack(out, i, plan.packs[i]);
  for (std::size_t i = 0; i < plan.channels.size(); ++i) {
    const Channel& channel = plan.channels[i];
    fmt::format_to(out, "c{} {} -> {}", i, channel.from, channel.to);
    if (channel.number != 0) fmt::format_to(out, " number {}", channel.number);
    fmt::format_to(out, "\n");
  }
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    fmt::format_to(out, "g{}", i);
    for (const std::int32_t device : plan.groups[i].devices) fmt::format_to(out, " {}", device);
    fmt::format_to(out, "\n");
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) print_buffer(out, plan, i);
  for (const Lane& lane : plan.lanes) {
    fmt::format_to(out, "lane of rank {}\n", lane.rank);
    for (const Step& step : lane.steps) {
      fmt::format_to(out, "  ");
      print_step(out, plan, step);
      fmt::format_to(out, "\n");
    }
  }
  return text;
}

std::string operator_of(Combine combine) {
  return combine == Combine::kSum ? " + " : fmt::format(" {} ", to_string(combine));
}

std::string describe(const Plan& plan, StepRef ref) {
  constexpr std::size_t kLongest = 100;
  std::string step;
  print_step(Out(step), plan, plan.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)]);
  if (step.size() > kLongest) step = step.substr(0, kLongest) + "...";
  return fmt::format("lane {} step {} ({})", ref.lane, ref.step, step);
}

std::string describe(const Plan& plan, const Operand& operand) {
  std::string text;
  print_operand(Out(text), plan, operand);
  return text;
}

}  // namespace onesum::plan
