// What a rank of a communicator and its meeting point tell each other, over a Unix socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onesum::emulated {

enum class FrameType : std::int32_t {
  // A rank's.
  kHello,       // root: how many ranks there are; process, device
  kCollective,  // with what the rank brings
  kBye,
  // The meeting point's.
  kWelcome,  // all are there; process: the meeting point's
  kResult,   // with what the rank gets
  kRefused,  // with a text: the ranks do not do the same
  kLost,     // rank: who is gone without a word
  kLeft,     // rank and process: who has said bye; to that one itself when it may end its process
};

struct Frame {
  FrameType type{};
  std::int32_t rank = 0;
  std::int32_t process = 0;
  std::int32_t device = 0;
  std::int32_t kind = 0;  // a Counted
  std::int32_t dtype = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;
  std::uint64_t payload_bytes = 0;
};

// Sockets with an address that needs no file. -1 where the system refuses.
int listen_at(const std::string& name);
int connect_to(const std::string& name);

// Waits until all is through; false when the connection has ended.
bool send_frame(int fd, const Frame& frame, std::span<const std::byte> payload = {});
bool receive_frame(int fd, Frame& frame, std::vector<std::byte>& payload);

}  // namespace onesum::emulated
