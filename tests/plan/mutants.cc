#include "plan/mutants.h"

#include <algorithm>
#include <utility>

namespace onesum::plan {

namespace {

class Mutation {
 public:
  Mutation(const Plan& plan, std::mt19937_64& random) : plan_(plan), random_(random) {
    do {
      lane_ = pick(plan_.lanes.size());
    } while (plan_.lanes[lane_].steps.empty());
    index_ = pick(steps().size());
  }

  Mutant apply() {
    const char* what = "";
    switch (pick(15)) {
      case 0:
        what = "drops";
        steps().erase(position());
        break;
      case 1:
        what = "doubles";
        steps().insert(position(), Step(step()));
        break;
      case 2:
      case 3:
        what = "retargets an operand of";
        if (Operand* operand = any_operand())
          operand->buffer = static_cast<std::int32_t>(pick(plan_.buffers.size()));
        break;
      case 4:
        what = "swaps with the next step";
        if (index_ + 1 < steps().size()) std::swap(step(), steps()[index_ + 1]);
        break;
      case 5:
        what = "moves";
        move_step();
        break;
      case 6:
        what = "shifts the chunks of an operand of";
        if (Operand* operand = any_operand()) shift(*operand);
        break;
      case 7:
        what = "shifts the chunks of all operands of";
        shift_all();
        break;
      case 8:
        what = "changes the merges of";
        change_merges();
        break;
      case 9:
        what = "changes the divisor of";
        step().divisor = 1 + static_cast<std::int64_t>(pick(4));
        break;
      case 10:
        what = "changes the channel of";
        change_channel();
        break;
      case 11:
        what = "swaps two sources of";
        swap_sources();
        break;
      case 12:
        what = "removes a destination of";
        if (step().num_destinations > 1) {
          ++step().first_operand;
          --step().num_destinations;
        }
        break;
      case 13:
        what = "changes the operation of";
        step().combine = static_cast<Combine>(pick(kNumCombines));
        break;
      default:
        what = "moves the wait, or changes the type, of";
        change_wait_or_type();
    }
    lay_out_operands(plan_);
    return {std::move(plan_),
            std::string(what) + " lane " + std::to_string(lane_) + " step " + std::to_string(index_)};
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::vector<Step>& steps() { return plan_.lanes[lane_].steps; }
  Step& step() { return steps()[index_]; }
  std::vector<Step>::iterator position() { return steps().begin() + static_cast<std::ptrdiff_t>(index_); }
  std::span<Operand> operands() {
    return std::span(plan_.operands)
        .subspan(step().first_operand, std::size_t{step().num_destinations} + step().num_sources);
  }
  std::span<Operand> sources() { return operands().subspan(step().num_destinations); }

  Operand* any_operand() { return operands().empty() ? nullptr : &operands()[pick(operands().size())]; }

  void move_step() {
    const Step moved = step();
    steps().erase(position());
    steps().insert(steps().begin() + static_cast<std::ptrdiff_t>(pick(steps().size() + 1)), moved);
  }

  void shift(Operand& operand) {
    const std::size_t chunks = num_chunks(plan_.packs[0].split);
    operand.chunks.first = static_cast<std::uint32_t>(pick(chunks));
    if (pick(4) == 0) operand.chunks.count = static_cast<std::uint32_t>(1 + pick(chunks));
  }

  void shift_all() {
    if (operands().empty()) return;
    shift(operands().front());
    for (Operand& operand : operands()) operand.chunks = operands().front().chunks;
  }

  void change_merges() {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < sources().size(); ++i) {
      ++depth;
      const std::size_t merges = i + 1 == sources().size() ? depth - 1 : pick(depth);
      sources()[i].merges = static_cast<std::uint8_t>(merges);
      depth -= merges;
    }
  }

  void change_channel() {
    if (step().channel < 0) return;
    step().channel = static_cast<std::int32_t>(pick(plan_.channels.size()));
    step().device = plan_.channel(step().channel).to;
    if (step().op != Op::kRecv) return;
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {  // its last view
      const Buffer& buffer = plan_.buffers[i];
      const bool is_view = buffer.role == Role::kView && buffer.index == step().channel;
      if (is_view) operands()[0].buffer = static_cast<std::int32_t>(i);
    }
  }

  void swap_sources() {
    if (sources().size() < 2) return;
    std::swap(sources()[pick(sources().size())].buffer, sources()[pick(sources().size())].buffer);
  }

  void change_wait_or_type() {
    if (step().op == Op::kWait) {
      step().step += static_cast<std::int32_t>(pick(3)) - 1;
    } else if (step().op == Op::kReduce) {
      step().accumulator = static_cast<Element>(pick(kNumElements));
    } else if (step().op == Op::kNative) {
      change_native();
    }
  }

  // Another group, or another collective, or a source less.
  void change_native() {
    switch (pick(3)) {
      case 0:
        step().group = static_cast<std::int32_t>(pick(plan_.groups.size()));
        break;
      case 1:
        step().collective = static_cast<Collective>(pick(3));
        break;
      default:
        if (step().num_sources > 1) --step().num_sources;
    }
  }

  Plan plan_;
  std::mt19937_64& random_;
  std::size_t lane_ = 0;
  std::size_t index_ = 0;
};

}  // namespace

Mutant mutate(const Plan& plan, std::mt19937_64& random) { return Mutation(plan, random).apply(); }

}  // namespace onesum::plan
