#include "emulated_gpu/wire.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace onesum::emulated {
namespace {

// The first byte of the path is 0: the name lives as long as its socket.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

bool send_all(int fd, const void* data, std::size_t bytes) {
  for (const auto* at = static_cast<const std::byte*>(data); bytes > 0;) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t bytes) {
  for (auto* at = static_cast<std::byte*>(data); bytes > 0;) {
    const ssize_t received = ::recv(fd, at, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

}  // namespace

int listen_at(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  sockaddr_un address;
  const socklen_t length = address_of(name, address);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 && ::listen(fd, 64) == 0)
    return fd;
  ::close(fd);
  return -1;
}

int connect_to(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address;
  const socklen_t length = address_of(name, address);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}

bool send_frame(int fd, const Frame& frame, std::span<const std::byte> payload) {
  Frame sized = frame;
  sized.payload_bytes = payload.size();
  return send_all(fd, &sized, sizeof(sized)) && send_all(fd, payload.data(), payload.size());
}

bool receive_frame(int fd, Frame& frame, std::vector<std::byte>& payload) {
  if (!receive_all(fd, &frame, sizeof(frame))) return false;
  payload.resize(frame.payload_bytes);
  return receive_all(fd, payload.data(), payload.size());
}

}  // namespace onesum::emulated
