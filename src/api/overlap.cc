#include "api/overlap.h"

#include <algorithm>
#include <functional>

namespace onesum::api {

OverlapCheck::OverlapCheck(std::vector<std::size_t> bytes, std::vector<bool> is_result,
                           const std::vector<bool>& is_replaced)
    : bytes_(std::move(bytes)), is_result_(std::move(is_result)) {
  for (std::size_t slot = 0; slot < bytes_.size(); ++slot) {
    if (bytes_[slot] > 0 && !is_replaced[slot]) order_.push_back(static_cast<std::uint32_t>(slot));
  }
}

std::optional<std::pair<std::size_t, std::size_t>> OverlapCheck::find(std::span<std::byte* const> bases) {
  const auto lies_before = [&](std::uint32_t a, std::uint32_t b) {
    return std::less<>()(bases[a], bases[b]);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), lies_before)) {
    std::sort(order_.begin(), order_.end(), lies_before);
  }
  // By address, what reaches furthest so far: of all, and of the results.
  std::optional<std::size_t> furthest;
  std::optional<std::size_t> furthest_result;
  const auto reaches_into = [&](const std::optional<std::size_t>& slot, std::size_t next) {
    return slot && std::less<>()(bases[next], bases[*slot] + bytes_[*slot]);
  };
  const auto extend = [&](std::optional<std::size_t>& slot, std::size_t next) {
    if (!slot || std::less<>()(bases[*slot] + bytes_[*slot], bases[next] + bytes_[next])) slot = next;
  };
  for (const std::size_t slot : order_) {
    const std::optional<std::size_t>& before = is_result_[slot] ? furthest : furthest_result;
    if (reaches_into(before, slot)) return std::pair(*before, slot);
    extend(furthest, slot);
    if (is_result_[slot]) extend(furthest_result, slot);
  }
  return std::nullopt;
}

}  // namespace onesum::api
