#include "plan/step_label.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "plan/text.h"

namespace onesum::plan {

namespace {

std::size_t length_of(const std::string& text) {  // in characters: continuation bytes of UTF-8 do not count
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string buffer_name(const Plan& plan, const Step& step, const Operand& operand) {
  const Buffer& buffer = plan.buffer(operand.buffer);
  const std::string where = buffer.device == step.device ? "" : std::to_string(buffer.device);
  switch (buffer.role) {
    case Role::kInput:
      return fmt::format("in{}", where);
    case Role::kOutput:
      return fmt::format("out{}", where);
    case Role::kInOut:
      return fmt::format("x{}", where);
    case Role::kTemp:
      return fmt::format("t{}", buffer.index);
    case Role::kSlot:
      return fmt::format("→{}", plan.channel(buffer.index).to);
    case Role::kView:
      break;
  }
  return fmt::format("←{}", plan.channel(buffer.index).from);
}

std::string sum_of(const Plan& plan, const Step& step) {
  std::vector<std::string> stack;
  for (const Operand& source : plan.sources(step)) {
    stack.push_back(buffer_name(plan, step, source));
    for (std::uint8_t i = 0; i < source.merges; ++i) {
      const std::string right = std::move(stack.back());
      stack.pop_back();
      stack.back() = fmt::format("({}{}{})", stack.back(), operator_of(step.combine), right);
    }
  }
  const bool bare = step.num_sources > 1 && step.divisor == 1;
  return bare ? stack.back().substr(1, stack.back().size() - 2) : stack.back();
}

std::string call_of(const Plan& plan, const Step& step) {
  std::string text = "f(";
  for (const Operand& source : plan.sources(step)) {
    text += (text.size() > 2 ? ", " : "") + buffer_name(plan, step, source);
  }
  return text + ")";
}

// What a rank's devices bring, and that others bring more.
std::string native_of(const Plan& plan, const Step& step) {
  std::string text;
  for (const Operand& source : plan.sources(step)) {
    text += (text.empty() ? "" : ", ") + buffer_name(plan, step, source);
  }
  const bool has_others = std::ranges::any_of(plan.group(step.group).devices, [&](std::int32_t device) {
    return plan.rank_of(device) != plan.rank_of(step.device);
  });
  if (has_others) text += text.empty() ? "…" : ", …";
  return step.collective == Collective::kBroadcast ? text : "Σ(" + text + ")";
}

std::string destinations_of(const Plan& plan, const Step& step) {
  std::string text = step.num_destinations == 0 ? "…" : "";
  for (const Operand& destination : plan.destinations(step)) {
    text += (text.empty() ? "" : ", ") + buffer_name(plan, step, destination);
  }
  return text;
}

std::string sources_of(const Plan& plan, const Step& step) {
  if (step.op == Op::kNative) return native_of(plan, step);
  return step.op == Op::kCall ? call_of(plan, step) : sum_of(plan, step);
}

std::string count_of(const Plan& plan, const Step& step) {
  const bool results = std::ranges::all_of(plan.destinations(step), [&](const Operand& destination) {
    const Role role = plan.buffer(destination.buffer).role;
    return role == Role::kOutput || role == Role::kInOut;
  });
  return fmt::format("{} {}", step.num_destinations, results ? "results" : "buffers");
}

std::string head_of(const Plan& plan, const Step& step) {
  constexpr const char* kNames[] = {"copy", "reduce", "recv", "release", "call", "wait", "counts", "native"};
  std::string head = kNames[static_cast<std::size_t>(step.op)];
  if (step.op == Op::kNative) {
    constexpr const char* kCollectives[] = {" all_reduce", " reduce", " broadcast"};
    head += kCollectives[static_cast<std::size_t>(step.collective)];
  }
  if (step.num_destinations + step.num_sources == 0) return head;
  const Operand& first = plan.operands[step.first_operand];
  const std::int32_t pack = plan.buffer(first.buffer).pack;
  if (plan.packs.size() > 1) head += fmt::format(" p{}", pack);
  if (num_chunks(plan.pack(pack).split) == 1) return head;
  if (first.chunks.count == 1) return head + fmt::format(" [{}]", first.chunks.first);
  return head + fmt::format(" [{}..{}]", first.chunks.first, first.chunks.first + first.chunks.count - 1);
}

}  // namespace

StepLabel step_label(const Plan& plan, StepRef ref, std::size_t longest) {
  constexpr std::size_t kMost = 64;  // operands that are worth writing out before the text is found too long
  const Step& step = plan.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  const std::string divisor = step.divisor == 1 ? "" : fmt::format(" / {}", step.divisor);
  if (!is_work(step.op)) return {head_of(plan, step), "", 0};
  std::vector<std::string> from, to;  // from long to short
  if (step.num_destinations <= kMost) to.push_back(destinations_of(plan, step));
  if (step.num_destinations > 1) to.push_back(count_of(plan, step));
  if (step.num_sources <= kMost) from.push_back(sources_of(plan, step));
  if (step.num_sources > 1) {
    from.push_back(
        fmt::format("{} of {}", step.op == Op::kCall ? "f" : to_string(step.combine), step.num_sources));
  }
  StepLabel label{head_of(plan, step), "", 0};
  for (const std::string& sources : from) {  // the order of additions says more than the list of destinations
    for (const std::string& destinations : to) {
      label.formula = fmt::format("{} = {}{}", destinations, sources, divisor);
      label.formula_length = length_of(label.formula);
      if (label.formula_length <= longest) return label;
    }
  }
  return label;
}

}  // namespace onesum::plan
