#include "exec/lending.h"

#include <algorithm>
#include <span>

namespace onesum::exec {
namespace {

using plan::Buffer;
using plan::Chunks;
using plan::Op;
using plan::Operand;
using plan::Role;
using plan::Step;

bool is_tensor(const Buffer& buffer) {
  return buffer.role == Role::kInput || buffer.role == Role::kInOut || buffer.role == Role::kOutput;
}

bool overlap(const Chunks& a, const Chunks& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

class Finder {
 public:
  Finder(const plan::Plan& plan, const Messages& messages, int own)
      : plan_(plan), messages_(messages), own_(own), uses_(plan.buffers.size()), reads_(messages.all.size()) {
    lending_.of_message.resize(messages.all.size());
    lending_.overwrites.resize(plan.lanes.size());
  }

  Lending find() {
    for_all_steps([&](Spot spot, const Step& step) { note_uses(spot, step); });
    for_all_steps([&](Spot spot, const Step& step) { find_sent(spot, step); });
    for_all_steps([&](Spot spot, const Step& step) {
      lending_.overwrites[static_cast<std::size_t>(spot.lane)].push_back(overwrites(spot, step));
      if (step.op == Op::kRecv) find_received(spot, plan_.destinations(step).front());
    });
    return std::move(lending_);
  }

 private:
  struct Spot {
    std::int32_t lane = -1;
    std::int32_t step = -1;
    friend bool operator==(const Spot&, const Spot&) = default;
  };
  struct Use {  // of a tensor
    Spot spot;
    Chunks chunks;
    bool is_sent = false;  // from there
  };
  struct Reads {  // of a message
    Spot last;
    const Operand* view = nullptr;
    std::size_t count = 0;
  };

  template <class Visit>
  void for_all_steps(const Visit& visit) {
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (plan_.lanes[lane].rank != own_) continue;
      const std::vector<Step>& steps = plan_.lanes[lane].steps;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        visit(Spot{static_cast<std::int32_t>(lane), static_cast<std::int32_t>(step)}, steps[step]);
      }
    }
  }

  const Buffer& buffer(const Operand& operand) const { return plan_.buffer(operand.buffer); }
  const Step& step_at(Spot spot) const {
    return plan_.lanes[static_cast<std::size_t>(spot.lane)].steps[static_cast<std::size_t>(spot.step)];
  }
  std::vector<Use>& uses(const Operand& tensor) { return uses_[static_cast<std::size_t>(tensor.buffer)]; }
  std::size_t message_of(const Operand& operand) const {
    return static_cast<std::size_t>(
        messages_.of_operand[static_cast<std::size_t>(&operand - plan_.operands.data())]);
  }
  bool has_call(std::int32_t pack) const {
    const std::vector<bool>& calls = messages_.stages.has_call;
    return static_cast<std::size_t>(pack) < calls.size() && calls[static_cast<std::size_t>(pack)];
  }
  // Who uses the tensor in a native collective is not known here.
  bool can_be_lent(const Operand& tensor, const Operand& message) const {
    const Buffer& its = buffer(tensor);
    const Buffer& box = buffer(message);
    return is_tensor(its) && its.pack == box.pack && its.element == box.element &&
           tensor.chunks == message.chunks && !has_call(its.pack) && plan_.groups.empty();
  }

  void note_uses(Spot spot, const Step& step) {
    for (const std::span<const Operand> operands : {plan_.destinations(step), plan_.sources(step)}) {
      for (const Operand& operand : operands) {
        if (is_tensor(buffer(operand))) uses(operand).push_back({spot, operand.chunks});
      }
    }
    for (const Operand& source : plan_.sources(step)) {
      if (buffer(source).role != Role::kView) continue;
      Reads& reads = reads_[message_of(source)];
      reads = {spot, &source, reads.count + 1};
    }
  }

  void find_sent(Spot spot, const Step& step) {
    if (step.op != Op::kCopy && step.op != Op::kReduce) return;
    for (const Operand& message : plan_.destinations(step)) {
      if (buffer(message).role != Role::kSlot) continue;
      const Operand* const tensor = tensor_with_content_of(step, message);
      if (tensor == nullptr) continue;
      lending_.of_message[message_of(message)].tensor = tensor;
      uses(*tensor).push_back({spot, tensor->chunks, true});
    }
  }

  const Operand* tensor_with_content_of(const Step& step, const Operand& message) const {
    const auto can_lend = [&](const Operand& operand) { return can_be_lent(operand, message); };
    if (step.op == Op::kCopy && can_lend(plan_.sources(step).front())) return &plan_.sources(step).front();
    const auto found = std::ranges::find_if(plan_.destinations(step), can_lend);
    return found == plan_.destinations(step).end() ? nullptr : &*found;
  }

  bool overwrites(Spot spot, const Step& step) {
    return std::ranges::any_of(plan_.destinations(step), [&](const Operand& written) {
      return is_tensor(buffer(written)) && std::ranges::any_of(uses(written), [&](const Use& use) {
               const bool is_later = use.spot.lane == spot.lane && use.spot.step >= spot.step;
               return use.is_sent && !is_later && overlap(use.chunks, written.chunks);
             });
    });
  }

  // One copy, to a tensor of which nobody else uses these chunks from the receive to the copy.
  void find_received(Spot spot, const Operand& message) {
    const Reads& reads = reads_[message_of(message)];
    if (reads.count != 1 || reads.last.lane != spot.lane || reads.view->chunks != message.chunks) return;
    const Step& copy = step_at(reads.last);
    if (copy.op != Op::kCopy) return;
    for (const Operand& tensor : plan_.destinations(copy)) {
      if (!can_be_lent(tensor, message)) continue;
      Lent lent{&tensor, spot.lane};
      for (const Use& use : uses(tensor)) {
        if (use.spot == reads.last || !overlap(use.chunks, tensor.chunks)) continue;
        if (use.spot.lane != spot.lane) return;
        if (use.spot.step > reads.last.step) continue;
        if (use.spot.step > spot.step) return;
        lent.after = std::max(lent.after, use.spot.step);
        lent.after_sends |= use.is_sent;
      }
      lending_.of_message[message_of(message)] = lent;
      return;
    }
  }

  const plan::Plan& plan_;
  const Messages& messages_;
  int own_;
  std::vector<std::vector<Use>> uses_;  // by buffer
  std::vector<Reads> reads_;            // by message
  Lending lending_;
};

}  // namespace

Lending lending_of(const plan::Plan& plan, const Messages& messages, int own) {
  return Finder(plan, messages, own).find();
}

}  // namespace onesum::exec
