#include "cluster/frames.h"

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/bytes.h"

namespace onesum::cluster {

std::vector<std::byte> encode_frame(std::uint16_t kind, std::size_t num_descriptors,
                                    std::span<const std::byte> payload) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(payload.size()));
  writer.number(kind);
  writer.number(static_cast<std::uint16_t>(num_descriptors));
  writer.raw(payload);
  return writer.take();
}

void FrameBuffer::append(std::span<const std::byte> bytes) {
  if (begin_ > 0 && begin_ >= bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameBuffer::next() {
  const std::span<const std::byte> unread = std::span(bytes_).subspan(begin_);
  if (unread.size() < kFrameHeaderBytes) return std::nullopt;
  ByteReader reader(unread);
  const auto length = reader.number<std::uint32_t>();
  Frame frame;
  frame.kind = reader.number<std::uint16_t>();
  frame.num_descriptors = reader.number<std::uint16_t>();
  if (length > kMostPayloadBytes || frame.num_descriptors > kMostDescriptors) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("announced a message of {} bytes and {} descriptors; expected at most {} and {}",
                            length, frame.num_descriptors, kMostPayloadBytes, kMostDescriptors));
  }
  if (reader.left() < length) return std::nullopt;
  const std::span<const std::byte> payload = reader.raw(length);
  frame.payload.assign(payload.begin(), payload.end());
  begin_ += kFrameHeaderBytes + length;
  return frame;
}

}  // namespace onesum::cluster
