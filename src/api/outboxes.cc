#include "api/outboxes.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum::api {
namespace {

// Three rounds under way at a time, and one copy for who is late to hear that it is free (exec/layout.cc).
// Where workers share cores nobody idles while a round waits, and one round at a time touches the least
// memory.
constexpr unsigned kPhases = 4;
constexpr unsigned kPhasesInACrowd = 2;
constexpr std::uint32_t kMessages = 1024;
// Over a network a message needs as much memory again where it arrives.
constexpr std::size_t kDirections = 2;
// The part of the bytes that is for one other worker, at most, and for a copy of all others that share
// memory: what a worker writes in a round should still be in its core's cache when the others of that core
// read it.
constexpr std::size_t kPartOfOne = 32;
constexpr std::size_t kPartOfCopiesInCaches = 256;

// What goes to all has room for what a worker has of a pack as large as that, and for its part of the sums:
// there are eight workers or more where both do (planner/automatic.cc).
constexpr std::size_t kPartOfSums = 8;

// Two workers of one machine have no use for the other direction of a network, and write elsewhere in every
// round: what was just read is in the other's cache, and has to be fetched from there to be written. A ring
// of 2 MiB is twice the second-level cache of a core.
constexpr std::size_t kRoomOfTwo = kDirections;

// So much comes on top for the headers of a round's messages, up to 16 of them. Tensors are mostly powers of
// two: what is too long by a header takes a round more, of next to nothing. Over TCP that costs less than it
// gains that messages are a little shorter than a power of two (docs/performance.md).
std::size_t headers_for(std::size_t bytes) noexcept {
  constexpr std::size_t kMost = 16 * engine::kMessageHeader;
  return std::min(kMost, bytes / 128) / engine::kMessageHeader * engine::kMessageHeader;
}

// Of a copy.
constexpr std::size_t kLeast = std::size_t{2} << 10;
constexpr std::size_t kLeastInCaches = std::size_t{16} << 10;

}  // namespace

engine::Limits limits_of(const OutboxRequest& request) {
  if (request.workers < 2) return {kLeast, kMessages, kPhases};
  const bool share_memory = !request.is_spread && !request.by_network;
  const unsigned phases =
      share_memory && request.is_crowded && request.workers > 2 ? kPhasesInACrowd : kPhases;
  const std::size_t peers = request.workers - 1;
  const std::size_t outboxes = std::max(peers + 1, kPartOfOne);  // one is for all
  const std::size_t copies = kDirections * phases;
  std::size_t bytes = request.bytes / outboxes / copies;
  if (share_memory) {
    const std::size_t in_caches = std::bit_floor(request.bytes / kPartOfCopiesInCaches / peers);
    bytes = std::min(bytes, std::max(kLeastInCaches, in_caches));
  }
  bytes -= bytes % engine::kMessageAlignment;
  if (bytes < kLeast) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("ONESUM_OUTBOX_BYTES is {}; expected at least {} with {} workers", request.bytes,
                            kLeast * copies * outboxes, request.workers));
  }
  if (share_memory) bytes += headers_for(bytes);
  const bool has_turns = request.workers == 2 && !request.is_spread;
  const bool has_common = share_memory && request.workers > 2;
  const std::size_t common = request.bytes / kPartOfCopiesInCaches;
  return {.bytes = bytes,
          .messages = kMessages,
          .phases = phases,
          .room = has_turns ? kRoomOfTwo * bytes : 0,
          .common_bytes = has_common ? common + common / kPartOfSums + headers_for(common) : 0};
}

}  // namespace onesum::api
