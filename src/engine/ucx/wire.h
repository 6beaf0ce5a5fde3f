// What travels: the header in front of each payload, and the tags by which UCX sorts messages.
//
//   data    0 | epoch 15 bits | sender 16 bits | beat 8 bits | number 24 bits
//   credit  1 | epoch 15 bits | sender 16 bits | beats that the sender has finished, 32 bits
//
// Of counters only the low bits are there: a sender is ahead of its receiver by less than Limits::phases
// beats. A credit has no contents but its tag. All ranks have the same byte order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/transport.h"

namespace onesum::engine::ucx {

inline constexpr int kMostRanks = 1 << 16;
inline constexpr std::uint32_t kMostMessages = 1U << 24;
inline constexpr unsigned kMostPhases = 1U << 7;

struct Header {
  std::uint64_t beat = 0;
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;     // of the payload
  std::uint64_t finished = 0;  // beats that the sender has finished
  std::uint32_t checksum = 0;  // of header and payload, this field being 0; 0 without checksums
  std::array<std::uint32_t, 7> unused{};
};
static_assert(sizeof(Header) == kMessageHeader);

using Tag = std::uint64_t;
inline constexpr Tag kExactly = ~Tag{0};
inline constexpr Tag kAnyCount = ~Tag{0xffffffff};

constexpr Tag sender_bits(std::uint32_t epoch, int sender) noexcept {
  return Tag{epoch & 0x7fff} << 48 | Tag{static_cast<std::uint16_t>(sender)} << 32;
}

constexpr Tag data_tag(std::uint32_t epoch, int sender, std::uint64_t beat, std::uint32_t number) noexcept {
  return sender_bits(epoch, sender) | (beat & 0xff) << 24 | number;
}

constexpr Tag credit_tag(std::uint32_t epoch, int sender, std::uint64_t finished) noexcept {
  return Tag{1} << 63 | sender_bits(epoch, sender) | (finished & 0xffffffff);
}

// The count that a credit's tag means to someone who knows `known`: whichever with these low bits is nearest,
// but none that is lower.
constexpr std::uint64_t finished_of(Tag credit, std::uint64_t known) noexcept {
  const auto ahead =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(credit) - static_cast<std::uint32_t>(known));
  return ahead > 0 ? known + static_cast<std::uint64_t>(ahead) : known;
}

}  // namespace onesum::engine::ucx
