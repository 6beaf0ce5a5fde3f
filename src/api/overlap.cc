#include "api/overlap.h"

#include <algorithm>
#include <functional>

namespace onesum::api {

OverlapCheck::OverlapCheck(std::vector<Use> uses) : uses_(std::move(uses)) {
  for (std::size_t slot = 0; slot < uses_.size(); ++slot) {
    if (uses_[slot].bytes > 0 && !uses_[slot].is_replaced) order_.push_back(static_cast<std::uint32_t>(slot));
  }
}

std::optional<std::pair<std::size_t, std::size_t>> OverlapCheck::find(std::span<std::byte* const> bases) {
  const auto begin_of = [&](std::size_t slot) { return bases[slot] + uses_[slot].offset; };
  const auto end_of = [&](std::size_t slot) { return begin_of(slot) + uses_[slot].bytes; };
  const auto lies_before = [&](std::uint32_t a, std::uint32_t b) {
    return std::less<>()(begin_of(a), begin_of(b));
  };
  if (!std::is_sorted(order_.begin(), order_.end(), lies_before)) {
    std::sort(order_.begin(), order_.end(), lies_before);
  }
  // By address, what reaches furthest so far: of all, and of the results.
  std::optional<std::size_t> furthest;
  std::optional<std::size_t> furthest_result;
  const auto reaches_into = [&](const std::optional<std::size_t>& slot, std::size_t next) {
    return slot && std::less<>()(begin_of(next), end_of(*slot));
  };
  const auto extend = [&](std::optional<std::size_t>& slot, std::size_t next) {
    if (!slot || std::less<>()(end_of(*slot), end_of(next))) slot = next;
  };
  for (const std::size_t slot : order_) {
    const std::optional<std::size_t>& before = uses_[slot].is_result ? furthest : furthest_result;
    if (reaches_into(before, slot)) return std::pair(*before, slot);
    extend(furthest, slot);
    if (uses_[slot].is_result) extend(furthest_result, slot);
  }
  return std::nullopt;
}

}  // namespace onesum::api
