#include "engine/tcp/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace onesum::engine::tcp {
namespace {

// More of them go one after the other.
constexpr std::size_t kMostParts = 16;

// Which every Linux has and lets everybody take.
constexpr char kUnpaced[] = "reno";

bool would_wait(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Whether both ends have the same address.
bool stays_on_this_machine(int socket) noexcept {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t length = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0) return false;
  length = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  const auto host_of = [](const sockaddr_storage& address) {
    std::array<std::byte, sizeof(in6_addr)> host{};
    if (address.ss_family == AF_INET) {
      std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in&>(address).sin_addr, sizeof(in_addr));
    } else if (address.ss_family == AF_INET6) {
      std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, sizeof(in6_addr));
    }
    return host;
  };
  return own.ss_family == peer.ss_family && host_of(own) == host_of(peer);
}

}  // namespace

void Parts::clear() noexcept {
  parts_.clear();
  first_ = 0;
  bytes_ = 0;
}

void Parts::add(const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  // The kernel takes both directions in one type; what is sent is not written.
  parts_.push_back({const_cast<void*>(memory), bytes});
  bytes_ += bytes;
}

void Parts::skip(std::size_t bytes) noexcept {
  bytes_ -= bytes;
  while (bytes > 0) {
    iovec& part = parts_[first_];
    const std::size_t now = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + now;
    part.iov_len -= now;
    bytes -= now;
    if (part.iov_len == 0) ++first_;
  }
}

Stream::Stream() : has_receiver_(false) {}

Stream::Stream(Fd socket) : socket_(std::move(socket)), staged_(kStaged) {
  const int yes = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Inside a machine no link wants to be spared, and pacing (of bbr, where that is the default) only costs.
  if (stays_on_this_machine(socket_.get())) {
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, kUnpaced, sizeof kUnpaced - 1);
  }
}

void Stream::fail(const std::string& how) {
  failure_ = how;
  lose_unsent();
}

void Stream::lose_unsent() noexcept {
  has_receiver_ = false;
  for (; first_ != nullptr; first_ = first_->next) --*first_->unsent;
  last_ = nullptr;
}

void Stream::send(Outgoing& message) {
  if (!has_receiver_) return;
  message.next = nullptr;
  ++*message.unsent;
  if (last_ != nullptr) {
    last_->next = &message;
    last_ = &message;
    return;
  }
  first_ = last_ = &message;
  push();
}

bool Stream::push() {
  bool has_moved = false;
  while (first_ != nullptr) {
    Parts& parts = first_->parts;
    msghdr message{};
    message.msg_iov = parts.begin();
    message.msg_iovlen = std::min(parts.count(), kMostParts);
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (would_wait(errno)) return has_moved;
      lose_unsent();  // what came before can still be read
      return true;
    }
    has_moved = true;
    parts.skip(static_cast<std::size_t>(count));
    if (!parts.are_empty()) continue;
    --*first_->unsent;
    first_ = first_->next;
    if (first_ == nullptr) last_ = nullptr;
  }
  return has_moved;
}

bool Stream::pull(Sink& sink) {
  bool has_come = false;
  while (is_open()) {
    std::array<iovec, kMostParts + 1> parts;
    const std::size_t count = std::min(payload_.count(), kMostParts);
    std::copy_n(payload_.begin(), count, parts.begin());
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) wanted += parts[i].iov_len;
    const bool has_all = count == payload_.count();
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    if (has_all) {
      parts[message.msg_iovlen++] = {staged_.data(), staged_.size()};
      wanted += staged_.size();
    }
    const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (received <= 0) {
      if (received == 0) fail("the other end closed it");
      if (received < 0 && !would_wait(errno)) fail(std::strerror(errno));
      return has_come || !is_open();
    }
    has_come = true;
    auto bytes = static_cast<std::size_t>(received);
    if (const std::size_t direct = std::min(bytes, payload_.bytes()); direct > 0) {
      payload_.skip(direct);
      bytes -= direct;
      if (payload_.are_empty()) end_message(sink);
    }
    take_staged(sink, bytes);
    if (static_cast<std::size_t>(received) < wanted) return true;
  }
  return has_come;
}

void Stream::take_staged(Sink& sink, std::size_t bytes) {
  const std::byte* next = staged_.data();
  while (bytes > 0 && is_open()) {
    if (header_bytes_ < sizeof header_) {
      const std::size_t now = std::min(bytes, sizeof header_ - header_bytes_);
      std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, next, now);
      header_bytes_ += now;
      next += now;
      bytes -= now;
      if (header_bytes_ < sizeof header_) return;
      payload_.clear();
      is_corrupt_ = header_.mark != Header::kMark || !sink.begin(header_, payload_);
      if (is_corrupt_) return fail("what came over it is no message");
      if (payload_.are_empty()) end_message(sink);
      continue;
    }
    const iovec& part = *payload_.begin();
    const std::size_t now = std::min(bytes, part.iov_len);
    std::memcpy(part.iov_base, next, now);
    payload_.skip(now);
    next += now;
    bytes -= now;
    if (payload_.are_empty()) end_message(sink);
  }
}

void Stream::end_message(Sink& sink) {
  header_bytes_ = 0;
  sink.end(header_);
}

bool Stream::has_arrived() const noexcept {
  int unacknowledged = 0;
  return !is_open() || ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

void Stream::drain() noexcept {
  if (!socket_) return;
  std::array<std::byte, 4096> nowhere;
  while (::recv(socket_.get(), nowhere.data(), nowhere.size(), MSG_DONTWAIT) > 0) continue;
}

}  // namespace onesum::engine::tcp
