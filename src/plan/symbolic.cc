#include "plan/symbolic.h"

#include <fmt/format.h>

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
        contents_(locations.size()),
        messages_(plan.channels.size()) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) fill(i);
  }

  void visit(StepRef ref) {
    const Step& step = plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
    switch (step.op) {
      case Op::kWait:
      case Op::kRelease:  // who reads a view later was refused before
        break;
      case Op::kRecv:
        receive(ref, step);
        break;
      case Op::kCopy:
      case Op::kReduce:
      case Op::kCall:
        compute(ref, step);
        break;
    }
  }

  std::vector<Content> take() { return std::move(contents_); }

 private:
  // Puts a replica where it is at the beginning. Of a concatenation, replica r is chunk r.
  void fill(std::int32_t number) {
    const Buffer& buffer = plan_.buffer(number);
    if (buffer.role != Role::kInput && buffer.role != Role::kInOut) return;
    const bool concatenate = plan_.pack(buffer.pack).contract == Contract::kConcatenate;
    const Expression value = expressions_.replica(buffer.index, buffer.element);
    for (std::uint32_t i = 0; i < buffer.window.count; ++i) {
      const std::uint32_t chunk = buffer.window.first + i;
      if (concatenate && chunk != static_cast<std::uint32_t>(buffer.index)) continue;
      contents_[locations_.at(number, chunk)].value = value;
    }
  }

  void receive(StepRef ref, const Step& step) {
    const Operand& view = plan_.destinations(step).front();
    const std::vector<Expression>& message = messages_[static_cast<std::size_t>(step.channel)];
    for (std::uint32_t i = 0; i < view.chunks.count; ++i) {
      contents_[locations_.at(view.buffer, view.chunks.first + i)] = {message[i], ref};
    }
  }

  Expression load(StepRef ref, const Operand& source, std::uint32_t chunk) const {
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
        stack_.back() = expressions_.add(stack_.back(), right, step.accumulator);
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
        std::vector<Expression>& message = messages_[static_cast<std::size_t>(buffer.index)];
        if (i == 0) message.assign(run.count, kNothing);
        message[i] = stored;
      }
    }
  }

  const Plan& plan_;
  const Locations& locations_;
  Expressions& expressions_;
  std::vector<Content> contents_;
  std::vector<std::vector<Expression>> messages_;  // by channel: what its slot holds
  std::vector<Expression> stack_;
};

}  // namespace

Element replica_type(const Plan& plan, std::int32_t pack, std::int32_t replica) {
  for (const Buffer& buffer : plan.buffers) {
    const bool is_replica = buffer.role == Role::kInput || buffer.role == Role::kInOut;
    if (is_replica && buffer.pack == pack && buffer.index == replica) return buffer.element;
  }
  return plan.pack(pack).accumulator;
}

std::vector<Content> execute(const Plan& plan, const Schedule& schedule, const Locations& locations,
                             Expressions& expressions) {
  Execution execution(plan, locations, expressions);
  for (const StepRef& ref : schedule) execution.visit(ref);
  return execution.take();
}

}  // namespace onesum::plan
