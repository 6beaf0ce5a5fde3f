#include "plan/crossing.h"

#include <algorithm>

namespace onesum::plan {

std::vector<LinkCost> sent_between_machines(const Plan& plan, const Sizes& sizes,
                                            std::span<const std::int32_t> machines) {
  std::vector<LinkCost> sent(machines.empty() ? 0 : static_cast<std::size_t>(std::ranges::max(machines)) + 1);
  const auto machine_of = [&](std::int32_t device) {
    const std::int32_t rank = plan.device_rank[static_cast<std::size_t>(device)];
    return static_cast<std::size_t>(machines[static_cast<std::size_t>(rank)]);
  };
  const auto count = [&](const Operand& message) {
    const Buffer& slot = plan.buffer(message.buffer);
    if (slot.role != Role::kSlot) return;
    const Channel& channel = plan.channel(slot.index);
    const std::size_t from = machine_of(channel.from);
    if (from == machine_of(channel.to)) return;
    ++sent[from].messages;
    sent[from].bytes += extent_of(plan, sizes, slot.pack, message.chunks).length * size_of(slot.element);
  };
  for (const Lane& lane : plan.lanes) {
    for (const Step& step : lane.steps) {
      if (is_work(step.op)) std::ranges::for_each(plan.destinations(step), count);
    }
  }
  return sent;
}

}  // namespace onesum::plan
