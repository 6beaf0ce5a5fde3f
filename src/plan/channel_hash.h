// Channels as keys of hash tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/plan.h"

namespace onesum::plan {

struct ChannelHash {
  std::size_t operator()(const Channel& channel) const noexcept {
    std::uint64_t x = static_cast<std::uint64_t>(channel.from) << 32 | static_cast<std::uint32_t>(channel.to);
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + static_cast<std::uint64_t>(channel.number);
    return (x ^ (x >> 32)) * 0x94d049bb133111ebu >> 7;
  }
};

}  // namespace onesum::plan
