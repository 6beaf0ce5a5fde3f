#include "plan/symbolic.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/contracts.h"
#include "plan/groups.h"
#include "plan/ranks.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

class Execution {
 public:
  Execution(const Plan& plan, const Locations& locations, Expressions& expressions)
      : plan_(plan),
        locations_(locations),
        expressions_(expressions),
        ranks_(plan),
        groups_(plan),
        contents_(locations.size()),
        messages_(plan.channels.size()) {
    if (ranks_.size() > 1) {
      needs_counts_.assign(ranks_.size() * plan.packs.size(), false);
      for (std::size_t i = 0; i < needs_counts_.size(); ++i) {
        needs_counts_[i] = is_by_counts(plan.packs[i % plan.packs.size()].split);
      }
    }
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) fill(i);
  }

  void visit(StepRef ref) {
    const Step& step = step_at(ref);
    switch (step.op) {
      case Op::kWait:
      case Op::kRelease:  // who reads a view later was refused before
        break;
      case Op::kCounts:
        if (!needs_counts_.empty()) needs_counts_[counts_of(ref, step.pack)] = false;
        break;
      case Op::kRecv:
        check_counts(ref, plan_.destinations(step).front());
        break;
      case Op::kCopy:
      case Op::kReduce:
      case Op::kCall:
        compute(ref, step);
        break;
      case Op::kNative:
        check_counts(ref, plan_.operands[step.first_operand]);
        meeting_.push_back(ref);
        if (meeting_.size() == groups_.members(step.group).size()) run_native();
        break;
    }
  }

  std::vector<Content> take() { return std::move(contents_); }

 private:
  // What a channel's slot holds. It is one slot, so its view shows the same until it is released.
  struct Message {
    std::uint32_t first = 0;  // chunk
    std::vector<Expression> values;
  };

  // Puts a replica where it is at the beginning.
  void fill(std::int32_t number) {
    const Buffer& buffer = plan_.buffer(number);
    if (buffer.role != Role::kInput && buffer.role != Role::kInOut) return;
    const Expression value = expressions_.replica(buffer.index, buffer.element);
    const Chunks brought = brought_by(plan_, buffer);
    for (std::uint32_t i = 0; i < brought.count; ++i) {
      contents_[locations_.at(number, brought.first + i)].value = value;
    }
  }

  std::size_t counts_of(StepRef ref, std::int32_t pack) const {
    return ranks_.of_lane(ref.lane) * plan_.packs.size() + static_cast<std::size_t>(pack);
  }

  void check_counts(StepRef ref, const Operand& operand) const {
    if (needs_counts_.empty()) return;
    const std::int32_t pack = plan_.buffer(operand.buffer).pack;
    if (!needs_counts_[counts_of(ref, pack)]) return;
    refuse(fmt::format("{}: rank {} does not know the counts of pack {} yet, expected a counts p{} before",
                       describe(plan_, ref), plan_.lane(ref.lane).rank, pack, pack));
  }

  Expression load(StepRef ref, const Operand& source, std::uint32_t chunk) const {
    const Buffer& buffer = plan_.buffer(source.buffer);
    if (buffer.role == Role::kView) {
      const Message& message = messages_[static_cast<std::size_t>(buffer.index)];
      return message.values[chunk - message.first];
    }
    const Expression value = contents_[locations_.at(source.buffer, chunk)].value;
    if (value == kNothing) {
      refuse(fmt::format("{} reads b{} chunk {}, which nobody wrote before", describe(plan_, ref),
                         source.buffer, chunk));
    }
    return value;
  }

  Expression sum(StepRef ref, const Step& step, std::uint32_t chunk) {
    stack_.clear();
    for (const Operand& source : plan_.sources(step)) {
      stack_.push_back(load(ref, source, chunk));
      for (std::uint8_t i = 0; i < source.merges; ++i) {
        const Expression right = stack_.back();
        stack_.pop_back();
        stack_.back() = expressions_.combine(stack_.back(), right, step.combine, step.accumulator);
      }
    }
    return stack_.back();
  }

  Expression call(StepRef ref, const Step& step, std::uint32_t chunk) {
    Expression arguments = kNothing;
    for (const Operand& source : plan_.sources(step)) {
      arguments = expressions_.arguments(arguments, load(ref, source, chunk));
    }
    return expressions_.call(arguments, step.accumulator);
  }

  void compute(StepRef ref, const Step& step) {
    check_counts(ref, plan_.sources(step).front());
    const Chunks run = plan_.sources(step).front().chunks;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint32_t chunk = run.first + i;
      const Expression value = step.op == Op::kCall ? call(ref, step, chunk) : sum(ref, step, chunk);
      for (const Operand& destination : plan_.destinations(step)) {
        const Buffer& buffer = plan_.buffer(destination.buffer);
        const Expression stored =
            step.op == Op::kCopy ? value
                                 : expressions_.finish(value, step.accumulator, step.divisor, buffer.element);
        if (buffer.role != Role::kSlot) {
          contents_[locations_.at(destination.buffer, chunk)] = {stored, ref};
          continue;
        }
        Message& message = messages_[static_cast<std::size_t>(buffer.index)];
        if (i == 0) message.values.clear();
        message.first = run.first;
        message.values.push_back(stored);
      }
    }
  }

  const Step& step_at(StepRef ref) const {
    return plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  }

  // What a native collective of one source leaves as it is, and what it makes of several.
  Expression combine(const std::vector<Expression>& values, Collective collective, Element element) {
    if (collective == Collective::kBroadcast || values.size() == 1) return values.front();
    Expression arguments = kNothing;
    for (const Expression value : values) arguments = expressions_.arguments(arguments, value);
    return expressions_.native(arguments, num_native_, element);
  }

  // All ranks have come: their steps happen together, each source is read before any destination is written.
  void run_native() {
    const Step& any = step_at(meeting_.front());
    const Operand& operand = plan_.operands[any.first_operand];
    for (std::uint32_t i = 0; i < operand.chunks.count; ++i) {
      const std::uint32_t chunk = operand.chunks.first + i;
      std::vector<Expression> values;
      for (const StepRef& ref : meeting_) {
        for (const Operand& source : plan_.sources(step_at(ref))) values.push_back(load(ref, source, chunk));
      }
      std::ranges::sort(values);
      const Expression result = combine(values, any.collective, plan_.buffer(operand.buffer).element);
      for (const StepRef& ref : meeting_) {
        for (const Operand& destination : plan_.destinations(step_at(ref))) {
          contents_[locations_.at(destination.buffer, chunk)] = {result, ref};
        }
      }
    }
    ++num_native_;
    meeting_.clear();
  }

  const Plan& plan_;
  const Locations& locations_;
  Expressions& expressions_;
  Ranks ranks_;
  Groups groups_;
  std::vector<bool> needs_counts_;  // by rank and pack; empty in a plan of one rank
  std::vector<Content> contents_;
  std::vector<Message> messages_;  // by channel
  std::vector<Expression> stack_;
  std::vector<StepRef> meeting_;  // native steps of one collective; the schedule has them together
  std::int64_t num_native_ = 0;   // collectives so far
};

}  // namespace

std::vector<Content> execute(const Plan& plan, const Schedule& schedule, const Locations& locations,
                             Expressions& expressions) {
  Execution execution(plan, locations, expressions);
  for (const StepRef& ref : schedule) execution.visit(ref);
  return execution.take();
}

}  // namespace onesum::plan
