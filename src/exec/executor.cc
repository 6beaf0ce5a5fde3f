#include "exec/executor.h"

#include <algorithm>
#include <span>
#include <string>

#include <onesum/error.h>

#include "exec/segments.h"

namespace onesum::exec {
namespace {

[[noreturn]] void throw_expired() {
  throw Error(ErrorCode::kDeadlineExceeded,
              "the call did not finish within its timeout; results passed by the caller are incomplete");
}

}  // namespace

// One run. Lanes take turns: a step that has to wait leaves the turn to the next lane. A verified plan always
// has a lane that can go on.
class Executor::Run {
 public:
  Run(Instance& instance, Deadline deadline, FunctionCaller* caller)
      : instance_(instance), program_(instance.program()), deadline_(deadline), caller_(caller) {
    std::ranges::fill(instance.done_, 0);
    std::ranges::fill(instance.messages_, MessageState::kNone);
  }

  void to_end() {
    std::vector<std::uint32_t>& lanes = instance_.lanes_;
    std::size_t waiting = 0;
    for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
      if (!advance(lane)) lanes[waiting++] = lane;
    }
    while (waiting > 0) {
      check_deadline();
      const std::uint64_t steps_before = steps_;
      std::size_t still_waiting = 0;
      for (std::size_t i = 0; i < waiting; ++i) {
        const std::uint32_t lane = lanes[i];
        if (!advance(lane)) lanes[still_waiting++] = lane;
      }
      if (steps_ == steps_before) throw_stuck(waiting);
      waiting = still_waiting;
    }
  }

 private:
  // Steps between two looks at the clock. (Steps of several segments look at it by themselves.)
  static constexpr std::uint64_t kStepsPerLook = 64;

  // Runs the steps of a lane until one has to wait; says whether the lane is at its end.
  bool advance(std::size_t lane) {
    const std::vector<BoundStep>& steps = program_.lanes[lane];
    std::int32_t& done = instance_.done_[lane];
    for (; done < static_cast<std::int32_t>(steps.size()); ++done) {
      const BoundStep& step = steps[static_cast<std::size_t>(done)];
      if (!can_run(step)) return false;
      perform(step);
      if (++steps_ % kStepsPerLook == 0) check_deadline();
    }
    return true;
  }

  MessageState& message(std::uint32_t channel) { return instance_.messages_[channel]; }
  std::span<const std::uint32_t> sends(const BoundStep& step) const {
    return std::span(program_.sends).subspan(step.first_send, step.num_sends);
  }

  bool can_run(const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
        return instance_.done_[static_cast<std::size_t>(step.wait_lane)] > step.wait_step;
      case plan::Op::kRecv:
        return message(step.channel) == MessageState::kSent;
      case plan::Op::kRelease:
        return message(step.channel) == MessageState::kReceived;
      default:
        return std::ranges::all_of(
            sends(step), [&](std::uint32_t channel) { return message(channel) == MessageState::kNone; });
    }
  }

  void perform(const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
        break;
      case plan::Op::kRecv:
        message(step.channel) = MessageState::kReceived;
        break;
      case plan::Op::kRelease:
        message(step.channel) = MessageState::kNone;
        break;
      case plan::Op::kCall:
        instance_.bases_[step.result_slot] = caller_->call(step.pack);
        instance_.resolve();
        check_deadline();
        break;
      default:
        if (step.num_segments > 0) run_arithmetic(step);
        for (const std::uint32_t channel : sends(step)) message(channel) = MessageState::kSent;
        break;
    }
  }

  void run_arithmetic(const BoundStep& step) const {
    if (!run_segments(program_, step, instance_.pointers_.data(), deadline_)) throw_expired();
  }

  void check_deadline() const {
    if (std::chrono::steady_clock::now() >= deadline_) throw_expired();
  }

  std::string why_waiting(const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
        return "for step " + std::to_string(step.wait_step) + " of lane " + std::to_string(step.wait_lane);
      case plan::Op::kRecv:
        return "for a message on channel " + std::to_string(step.channel);
      case plan::Op::kRelease:
        return "to release what was not received on channel " + std::to_string(step.channel);
      default:
        break;
    }
    const auto taken = std::ranges::find_if(
        sends(step), [&](std::uint32_t channel) { return message(channel) != MessageState::kNone; });
    return "to send on channel " + std::to_string(*taken) + ", whose last message is not released";
  }

  [[noreturn]] void throw_stuck(std::size_t waiting) {
    const std::uint32_t lane = instance_.lanes_.front();
    const auto number = static_cast<std::size_t>(instance_.done_[lane]);
    throw Error(ErrorCode::kInternal, "no lane can go on: lane " + std::to_string(lane) + " waits at step " +
                                          std::to_string(number) + " " +
                                          why_waiting(program_.lanes[lane][number]) +
                                          "; lanes that wait: " + std::to_string(waiting));
  }

  Instance& instance_;
  const Program& program_;
  Deadline deadline_;
  FunctionCaller* caller_;
  std::uint64_t steps_ = 0;  // done in all lanes
};

void Executor::run(Instance& instance, Deadline deadline, FunctionCaller* caller) {
  Run(instance, deadline, caller).to_end();
}

}  // namespace onesum::exec
