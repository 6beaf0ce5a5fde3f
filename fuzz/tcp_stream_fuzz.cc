// What comes over a connection for messages: any bytes, in any pieces. Nothing is written but
// inboxes and the memory that was named for a message, which the sanitizers see.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "engine/tcp/tcp_transport.h"

namespace {

using namespace onesum;
using namespace onesum::engine;

constexpr Limits kLimits{.bytes = 4096, .messages = 3, .phases = 2};
constexpr std::uint64_t kToken = 0x0101010101010101;

// A rank whose only peer says these bytes, some at a time; a few beats begin and end meanwhile.
void hear(std::span<const std::uint8_t> bytes, std::size_t piece, bool lends) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  std::vector<Fd> sockets(2);
  sockets[1] = Fd(ends[1]);
  tcp::TcpTransport transport({.rank = 0, .size = 2, .limits = kLimits}, std::move(sockets));
  const Fd peer(ends[0]);  // goes first: nobody waits for it to read
  std::vector<std::byte> memory(300);
  std::vector<Place> incoming = {{.peer = 1, .number = 0, .offset = 64, .bytes = 300, .is_lent = lends},
                                 {.peer = 1, .number = 1, .offset = 512, .bytes = 1}};
  for (std::uint64_t number = 0; number < 4; ++number) {
    const Beat beat{number, kToken};
    transport.begin(beat, incoming);
    if (lends && number % 2 == 0) transport.receive_into(beat, incoming[0], std::vector<Stretch>{memory});
    const std::size_t count = std::min(piece, bytes.size());
    if (count > 0 && ::send(peer.get(), bytes.data(), count, MSG_NOSIGNAL) < 0) return;
    bytes = bytes.subspan(count);
    transport.progress();
    if (lends && number % 2 != 0) transport.receive_into(beat, incoming[0], std::vector<Stretch>{memory});
    for (const Place& place : incoming) transport.arrival(beat, place);
    transport.finish(beat);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  hear({data + 2, size - 2}, 1 + data[0] * std::size_t{16}, data[1] % 2 != 0);
  return 0;
}
