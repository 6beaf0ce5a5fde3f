#include "exec/stages.h"

#include <algorithm>

namespace onesum::exec {
namespace {

using plan::Op;
using plan::Operand;
using plan::Role;
using plan::Step;

class Staging {
 public:
  Staging(const plan::Plan& plan, std::span<const std::int32_t> of_operand, std::size_t messages)
      : plan_(plan), of_operand_(of_operand) {
    stages_.has_call.resize(plan.packs.size());
    stages_.can_be_cut.resize(plan.packs.size());
    stages_.is_message_after.resize(messages);
    for (const plan::Lane& lane : plan.lanes) {
      stages_.is_after.emplace_back(lane.steps.size());
      for (const Step& step : lane.steps) {
        if (step.op != Op::kCall) continue;
        stages_.has_call[pack_of(step)] = true;
        stages_.can_be_cut[pack_of(step)] = true;
      }
    }
  }

  Stages find() {
    if (std::ranges::find(stages_.has_call, true) == stages_.has_call.end()) return std::move(stages_);
    bool has_news = true;
    while (has_news) {
      has_news = false;
      for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) has_news = follow(lane) || has_news;
    }
    find_what_cannot_be_cut();
    return std::move(stages_);
  }

 private:
  std::size_t pack_of(const Step& step) const {
    return static_cast<std::size_t>(plan_.buffer(plan_.destinations(step).front().buffer).pack);
  }
  std::vector<bool>::reference is_message_after(const Operand& operand) {
    const std::int32_t message = of_operand_[static_cast<std::size_t>(&operand - plan_.operands.data())];
    return stages_.is_message_after[static_cast<std::size_t>(message)];
  }

  // A lane is after the call of a pack once it has made the call, or received what the call gives. Says
  // whether messages became known to be after it.
  bool follow(std::size_t lane) {
    const std::vector<Step>& steps = plan_.lanes[lane].steps;
    std::vector<bool> is_past(plan_.packs.size());
    bool has_news = false;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].num_destinations == 0) continue;
      const std::size_t pack = pack_of(steps[s]);
      const bool gets_result =
          steps[s].op == Op::kRecv && is_message_after(plan_.destinations(steps[s]).front());
      if (steps[s].op == Op::kCall || gets_result) is_past[pack] = true;
      if (!is_past[pack]) continue;
      stages_.is_after[lane][s] = true;
      for (const Operand& operand : plan_.destinations(steps[s])) {
        if (plan_.buffer(operand.buffer).role != Role::kSlot || is_message_after(operand)) continue;
        is_message_after(operand) = true;
        has_news = true;
      }
    }
    return has_news;
  }

  void find_what_cannot_be_cut() {
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      const std::vector<Step>& steps = plan_.lanes[lane].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        for (const Operand& source : plan_.sources(steps[s])) {
          const plan::Buffer& buffer = plan_.buffer(source.buffer);
          if (stages_.is_after[lane][s] && buffer.role == Role::kView && !is_message_after(source))
            stages_.can_be_cut[static_cast<std::size_t>(buffer.pack)] = false;
        }
      }
    }
  }

  const plan::Plan& plan_;
  std::span<const std::int32_t> of_operand_;
  Stages stages_;
};

}  // namespace

Stages stages_of(const plan::Plan& plan, std::span<const std::int32_t> of_operand, std::size_t messages) {
  return Staging(plan, of_operand, messages).find();
}

}  // namespace onesum::exec
