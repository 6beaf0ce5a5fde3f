// What travels over a connection: messages, one after the other, each a header and its payload. All ranks
// have the same byte order.
#pragma once

#include <cstdint>

#include "engine/transport.h"

namespace onesum::engine::tcp {

enum class Kind : std::uint32_t {
  kMessage,
  kNews,  // of `finished` only
};

struct Header {
  static constexpr std::uint32_t kMark = 0x6d757331;

  std::uint32_t mark = kMark;  // so that a stream which lost its way is not taken for messages
  Kind kind = Kind::kMessage;
  std::uint64_t beat = 0;
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;     // of the payload
  std::uint64_t offset = 0;    // of the payload in the copy of the box: both ends know it, if they call alike
  std::uint64_t finished = 0;  // beats that the sender has finished
  std::uint32_t number = 0;    // among the beat's messages to this receiver
  // 0 without checksums.
  std::uint32_t payload_checksum = 0;
  std::uint32_t checksum = 0;  // of the header, this field being 0
  std::uint32_t unused = 0;
};
static_assert(sizeof(Header) == kMessageHeader);

}  // namespace onesum::engine::tcp
