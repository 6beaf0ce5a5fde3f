#include "exec/messages.h"

#include <string>

#include <onesum/error.h>

#include "plan/progress.h"
#include "plan/text.h"

namespace onesum::exec {
namespace {

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

// Walks over the steps in an order in which they can run, with the message of each channel at hand.
class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), received_(plan.channels.size(), Operand{-1, {}, 0}) {
    messages_.reserve(plan.operands.size());
    for (const Operand& operand : plan.operands) messages_.push_back(operand.chunks);
  }

  std::vector<Chunks> to_end() {
    if (each_view_stays_in_a_lane()) {
      for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
        const auto steps = static_cast<std::int32_t>(plan_.lane(lane).steps.size());
        for (std::int32_t step = 0; step < steps; ++step) visit({lane, step});
      }
    } else {
      for (const StepRef& ref : plan::run_to_end(plan_)) visit(ref);
    }
    return std::move(messages_);
  }

 private:
  // Whether the messages of every channel are received and read in one lane, whose own order then tells.
  bool each_view_stays_in_a_lane() const {
    std::vector<std::int32_t> lane_of(plan_.channels.size(), -1);
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
      const auto is_foreign = [&](std::int32_t channel) {
        std::int32_t& owner = lane_of[static_cast<std::size_t>(channel)];
        if (owner == -1) owner = lane;
        return owner != lane;
      };
      for (const Step& step : plan_.lane(lane).steps) {
        if (step.op == Op::kRecv && is_foreign(step.channel)) return false;
        for (const Operand& source : plan_.sources(step)) {
          const plan::Buffer& buffer = plan_.buffer(source.buffer);
          if (buffer.role == Role::kView && is_foreign(buffer.index)) return false;
        }
      }
    }
    return true;
  }

  void visit(StepRef ref) {
    const Step& step = plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
    if (step.op == Op::kRecv) {
      received_[static_cast<std::size_t>(step.channel)] = plan_.destinations(step).front();
      return;
    }
    for (std::size_t i = 0; i < step.num_sources; ++i) {
      const std::size_t number = std::size_t{step.first_operand} + step.num_destinations + i;
      const plan::Buffer& buffer = plan_.buffer(plan_.operands[number].buffer);
      if (buffer.role == Role::kView) messages_[number] = message_of(ref, plan_.operands[number]);
    }
  }

  Chunks message_of(StepRef ref, const Operand& view) const {
    const Operand& received = received_[static_cast<std::size_t>(plan_.buffer(view.buffer).index)];
    if (received.buffer == view.buffer && is_inside(view.chunks, received.chunks)) return received.chunks;
    throw Error(ErrorCode::kInternal, "a plan was bound whose " + plan::describe(plan_, ref) + " reads " +
                                          plan::describe(plan_, view) + ", which was not received");
  }

  const Plan& plan_;
  std::vector<Operand> received_;  // by channel: what the last kRecv exposed
  std::vector<Chunks> messages_;
};

}  // namespace

std::vector<Chunks> messages_of_operands(const Plan& plan) { return Walk(plan).to_end(); }

}  // namespace onesum::exec
