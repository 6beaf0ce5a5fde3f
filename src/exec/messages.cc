#include "exec/messages.h"

#include <string>

#include <onesum/error.h>

#include "plan/progress.h"
#include "plan/text.h"

namespace onesum::exec {
namespace {

using plan::Buffer;
using plan::Chunks;
using plan::Op;
using plan::Operand;
using plan::Plan;
using plan::Role;
using plan::Step;
using plan::StepRef;

bool is_inside(const Chunks& run, const Chunks& message) {
  return run.first >= message.first && run.first + run.count <= message.first + message.count;
}

// Whether every channel is written in one lane, and received and read in one, whose own order then tells.
class LanesOfChannels {
 public:
  explicit LanesOfChannels(const Plan& plan)
      : plan_(plan), writers_(plan.channels.size(), -1), readers_(plan.channels.size(), -1) {}

  bool are_single() {
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
      for (const Step& step : plan_.lane(lane).steps) {
        if (!claim_all(plan_.destinations(step), lane) || !claim_all(plan_.sources(step), lane)) return false;
      }
    }
    return true;
  }

 private:
  bool claim_all(std::span<const Operand> operands, std::int32_t lane) {
    for (const Operand& operand : operands) {
      const Buffer& buffer = plan_.buffer(operand.buffer);
      if (buffer.role == Role::kSlot && !claim(writers_, buffer.index, lane)) return false;
      if (buffer.role == Role::kView && !claim(readers_, buffer.index, lane)) return false;
    }
    return true;
  }

  static bool claim(std::vector<std::int32_t>& owners, std::int32_t channel, std::int32_t lane) {
    std::int32_t& owner = owners[static_cast<std::size_t>(channel)];
    if (owner == -1) owner = lane;
    return owner == lane;
  }

  const Plan& plan_;
  std::vector<std::int32_t> writers_;
  std::vector<std::int32_t> readers_;
};

// Walks over the steps in an order in which each end of every channel is used as in a run.
class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), channels_(plan.channels.size()) {
    messages_.of_operand.assign(plan.operands.size(), -1);
  }

  Messages to_end() {
    if (LanesOfChannels(plan_).are_single()) {
      for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
        const auto steps = static_cast<std::int32_t>(plan_.lane(lane).steps.size());
        for (std::int32_t step = 0; step < steps; ++step) visit({lane, step});
      }
    } else {
      for (const StepRef& ref : plan::run_to_end(plan_)) visit(ref);
    }
    check_views();
    return by_channel();
  }

 private:
  struct ChannelState {
    std::vector<std::int32_t> messages;
    std::size_t sent = 0;
    std::size_t received = 0;
  };
  // A view that a step reads, to be compared with its message when all messages are known.
  struct Reading {
    StepRef by;
    std::size_t operand;
  };

  ChannelState& channel(std::int32_t number) { return channels_[static_cast<std::size_t>(number)]; }

  // The message of that number on a channel, whichever end comes to it first.
  std::int32_t message(std::int32_t number, std::size_t ordinal) {
    std::vector<std::int32_t>& known = channel(number).messages;
    if (ordinal == known.size()) {
      known.push_back(static_cast<std::int32_t>(messages_.all.size()));
      messages_.alike.push_back(static_cast<std::int32_t>(messages_.all.size()));
      messages_.all.push_back({number, {}, -1});
    }
    return known[ordinal];
  }

  void visit(StepRef ref) {
    const Step& step = plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
    const std::size_t operands = std::size_t{step.num_destinations} + step.num_sources;
    for (std::size_t i = 0; i < operands; ++i) {
      const std::size_t number = step.first_operand + i;
      const Buffer& buffer = plan_.buffer(plan_.operands[number].buffer);
      if (buffer.role == Role::kSlot) send(number, buffer.index);
      if (buffer.role == Role::kView) read(ref, step.op, number, buffer.index);
    }
    find_alike(plan_.destinations(step));
  }

  void find_alike(std::span<const Operand> destinations) {
    const Operand* first = nullptr;
    for (const Operand& operand : destinations) {
      if (plan_.buffer(operand.buffer).role != Role::kSlot) continue;
      if (first == nullptr) first = &operand;
      if (operand.chunks == first->chunks &&
          plan_.buffer(operand.buffer).element == plan_.buffer(first->buffer).element) {
        messages_.alike[static_cast<std::size_t>(message_of(operand))] = message_of(*first);
      }
    }
  }

  std::int32_t message_of(const Operand& operand) const {
    return messages_.of_operand[static_cast<std::size_t>(&operand - plan_.operands.data())];
  }

  void send(std::size_t operand, std::int32_t number) {
    const std::int32_t sent = message(number, channel(number).sent++);
    Message& written = messages_.all[static_cast<std::size_t>(sent)];
    written.chunks = plan_.operands[operand].chunks;
    written.buffer = plan_.operands[operand].buffer;
    messages_.of_operand[operand] = sent;
  }

  void read(StepRef ref, Op op, std::size_t operand, std::int32_t number) {
    if (op == Op::kRecv) message(number, channel(number).received++);
    const std::size_t received = channel(number).received;
    if (received == 0) refuse(ref, operand);
    messages_.of_operand[operand] = message(number, received - 1);
    readings_.push_back({ref, operand});
  }

  // Numbered anew, channel by channel: the order of steps may differ between what two ranks know of a plan,
  // as each knows of its own results alone which are in place; what a channel carries does not.
  Messages by_channel() const {
    Messages ordered;
    std::vector<std::int32_t> numbers(messages_.all.size());
    std::vector<std::int32_t> first(messages_.all.size(), -1);  // of those alike, by the number of old
    for (const ChannelState& state : channels_) {
      for (const std::int32_t message : state.messages) {
        const auto number = static_cast<std::int32_t>(ordered.all.size());
        numbers[static_cast<std::size_t>(message)] = number;
        ordered.all.push_back(messages_.all[static_cast<std::size_t>(message)]);
        const std::int32_t alike = messages_.alike[static_cast<std::size_t>(message)];
        std::int32_t& known = first[static_cast<std::size_t>(alike)];
        if (known == -1) known = number;
        ordered.alike.push_back(known);
      }
    }
    for (const std::int32_t message : messages_.of_operand) {
      ordered.of_operand.push_back(message < 0 ? -1 : numbers[static_cast<std::size_t>(message)]);
    }
    ordered.stages = stages_of(plan_, ordered.of_operand, ordered.all.size());
    return ordered;
  }

  void check_views() const {
    for (const Reading& reading : readings_) {
      const Operand& view = plan_.operands[reading.operand];
      const auto number = static_cast<std::size_t>(messages_.of_operand[reading.operand]);
      const Message& read = messages_.all[number];
      if (read.buffer == -1 || !is_inside(view.chunks, read.chunks)) refuse(reading.by, reading.operand);
    }
  }

  [[noreturn]] void refuse(StepRef ref, std::size_t operand) const {
    throw Error(ErrorCode::kInternal, "a plan was bound whose " + plan::describe(plan_, ref) + " reads " +
                                          plan::describe(plan_, plan_.operands[operand]) +
                                          ", which was not sent or not received");
  }

  const Plan& plan_;
  std::vector<ChannelState> channels_;
  std::vector<Reading> readings_;
  Messages messages_;
};

}  // namespace

Messages messages_of(const Plan& plan) { return Walk(plan).to_end(); }

}  // namespace onesum::exec
