// The stream of bytes between two workers as messages. Each is a frame:
//   u32 length of the payload, u16 kind, u16 number of descriptors passed with it, payload
// little-endian. Pure: sockets are connection.h's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace onesum::cluster {

// A worker's offer (rendezvous.h) may be this long.
inline constexpr std::size_t kMostOfferBytes = std::size_t{16} << 20;
// What else is in the same message is small.
inline constexpr std::size_t kMostPayloadBytes = kMostOfferBytes + (std::size_t{1} << 20);
inline constexpr std::size_t kMostDescriptors = 16;

struct Frame {
  std::uint16_t kind = 0;
  std::uint16_t num_descriptors = 0;
  std::vector<std::byte> payload;
};

inline constexpr std::size_t kFrameHeaderBytes = 8;

// Header and payload. The payload is at most kMostPayloadBytes long.
std::vector<std::byte> encode_frame(std::uint16_t kind, std::size_t num_descriptors,
                                    std::span<const std::byte> payload);

// Takes bytes as they come and gives whole frames. Holds no more than has come.
class FrameBuffer {
 public:
  void append(std::span<const std::byte> bytes);
  // The oldest frame, if it is complete. Throws invalid_argument for one that is longer than a payload may
  // be, as soon as its header says so; nothing can be read after that.
  std::optional<Frame> next();
  // Whether part of a frame is there.
  bool is_empty() const noexcept { return begin_ == bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;  // what comes before was read
};

}  // namespace onesum::cluster
