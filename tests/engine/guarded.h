// Memory between guards, at any distance from a cache line's beginning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/reference.h"

namespace onesum::engine::testing {

class Guarded {
 public:
  explicit Guarded(std::size_t bytes, std::size_t misalignment = 0)
      : bytes_(bytes), storage_(bytes + 3 * kGuard, kPattern) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data() + kGuard);
    begin_ = kGuard + (kGuard - address % kGuard) % kGuard + misalignment % kGuard;
  }
  explicit Guarded(const Bytes& content, std::size_t misalignment = 0)
      : Guarded(content.size(), misalignment) {
    if (bytes_ != 0) std::memcpy(data(), content.data(), bytes_);
  }

  std::byte* data() { return storage_.data() + begin_; }
  const std::byte* data() const { return storage_.data() + begin_; }
  Bytes content() const { return {data(), data() + bytes_}; }

  bool guards_are_intact() const {
    const auto is_intact = [](std::byte byte) { return byte == kPattern; };
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(storage_.begin(), begin, is_intact) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), storage_.end(), is_intact);
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr std::byte kPattern{0xA5};

  std::size_t bytes_;
  std::size_t begin_ = 0;
  Bytes storage_;
};

}  // namespace onesum::engine::testing
