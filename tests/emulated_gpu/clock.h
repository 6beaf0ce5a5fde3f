// A vector clock: of every stream, how many of its operations come before. Streams are never renumbered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace onesum::emulated {

class Clock {
 public:
  std::uint64_t at(std::uint32_t stream) const {
    const auto found = std::lower_bound(counts_.begin(), counts_.end(), stream, before);
    return found == counts_.end() || found->first != stream ? 0 : found->second;
  }

  // Both return whether anything is new.
  bool advance(std::uint32_t stream, std::uint64_t count) {
    const auto found = std::lower_bound(counts_.begin(), counts_.end(), stream, before);
    if (found == counts_.end() || found->first != stream) {
      counts_.insert(found, {stream, count});
      return true;
    }
    if (found->second >= count) return false;
    found->second = count;
    return true;
  }

  bool join(const Clock& other) {
    bool is_new = false;
    for (const auto& [stream, count] : other.counts_) is_new |= advance(stream, count);
    return is_new;
  }

 private:
  using Count = std::pair<std::uint32_t, std::uint64_t>;
  static bool before(const Count& count, std::uint32_t stream) { return count.first < stream; }

  std::vector<Count> counts_;  // sorted by stream
};

}  // namespace onesum::emulated
