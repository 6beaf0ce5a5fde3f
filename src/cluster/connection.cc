#include "cluster/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <onesum/error.h>

#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

constexpr std::size_t kReadBytes = 65536;
constexpr std::size_t kControlBytes = CMSG_SPACE(kMostDescriptors * sizeof(int));

bool would_wait(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Fd duplicate(int descriptor) {
  Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    throw Error(errno == EMFILE ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument,
                fmt::format("descriptor {} cannot be passed: {}", descriptor, std::strerror(errno)));
  }
  return copy;
}

}  // namespace

Connection::Connection(Fd socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)), is_unix_(local_address(socket_).is_unix()) {}

void Connection::fail(const std::string& what) const {
  throw Error(ErrorCode::kUnavailable, fmt::format("{} {}", peer_, what));
}

void Connection::queue(std::uint16_t kind, std::span<const std::byte> payload,
                       std::span<const int> descriptors) {
  if (payload.size() > kMostPayloadBytes || descriptors.size() > kMostDescriptors) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a message to {} has {} bytes and {} descriptors; expected at most {} and {}",
                            peer_, payload.size(), descriptors.size(), kMostPayloadBytes, kMostDescriptors));
  }
  if (!descriptors.empty() && !is_unix_) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("descriptors cannot be passed to {}: it is not reached over a Unix socket", peer_));
  }
  Outgoing message{encode_frame(kind, descriptors.size(), payload), 0, {}};
  for (const int descriptor : descriptors) message.descriptors.push_back(duplicate(descriptor));
  unsent_.push_back(std::move(message));
}

bool Connection::flush() {
  while (!unsent_.empty()) {
    Outgoing& message = unsent_.front();
    const std::size_t before = message.num_sent;
    write_some(message);
    if (message.num_sent == message.bytes.size()) {
      unsent_.pop_front();
    } else if (message.num_sent == before) {
      return false;
    }
  }
  return true;
}

void Connection::write_some(Outgoing& message) {
  iovec part{message.bytes.data() + message.num_sent, message.bytes.size() - message.num_sent};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  if (!message.descriptors.empty()) {
    const std::size_t bytes = message.descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::array<int, kMostDescriptors> numbers{};
    std::ranges::transform(message.descriptors, numbers.begin(), &Fd::get);
    std::memcpy(CMSG_DATA(rights), numbers.data(), bytes);
  }
  const ssize_t count = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
  if (count < 0) {
    if (would_wait(errno)) return;
    fail(errno == EPIPE || errno == ECONNRESET
             ? "closed the connection"
             : fmt::format("cannot be written to: {}", std::strerror(errno)));
  }
  message.num_sent += static_cast<std::size_t>(count);
  if (count > 0) message.descriptors.clear();
}

void Connection::send(std::uint16_t kind, std::span<const std::byte> payload, Clock::time_point deadline,
                      std::span<const int> descriptors) {
  queue(kind, payload, descriptors);
  while (!flush()) {
    if (now() >= deadline) {
      throw Error(ErrorCode::kDeadlineExceeded, fmt::format("{} did not take a message in time", peer_));
    }
    std::vector<pollfd> polled{{fd(), POLLOUT, 0}};
    wait_for(polled, deadline);
  }
}

std::optional<Message> Connection::next_message() {
  std::optional<Frame> frame;
  try {
    frame = incoming_.next();
  } catch (const Error& error) {
    fail(error.what());
  }
  if (!frame) return std::nullopt;
  if (frame->num_descriptors > incoming_descriptors_.size()) {
    fail(fmt::format("announced {} descriptors and sent {}", frame->num_descriptors,
                     incoming_descriptors_.size()));
  }
  Message message{frame->kind, std::move(frame->payload), {}};
  for (std::size_t i = 0; i < frame->num_descriptors; ++i) {
    message.descriptors.push_back(std::move(incoming_descriptors_.front()));
    incoming_descriptors_.pop_front();
  }
  return message;
}

void Connection::take_descriptors(const void* received) {
  auto* const header = static_cast<msghdr*>(const_cast<void*>(received));
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      incoming_descriptors_.emplace_back(number);
    }
  }
  // Two messages may be under way at once; whoever sends descriptors that no message claims is wrong.
  if ((header->msg_flags & MSG_CTRUNC) != 0) fail("sent descriptors, and this process can open no more");
  if (incoming_descriptors_.size() > 64 * kMostDescriptors) {
    fail("sent more descriptors than its messages announce");
  }
}

bool Connection::read_some() {
  std::array<std::byte, kReadBytes> buffer;
  alignas(cmsghdr) std::array<char, kControlBytes> control;
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (is_unix_) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  const ssize_t count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  if (count < 0) {
    if (would_wait(errno)) return false;
    if (errno == ECONNRESET) {  // it ended with something unread; over TCP anybody between can say so
      is_at_end_ = true;
      has_orderly_end_ = is_unix_;
      return false;
    }
    fail(fmt::format("cannot be read from: {}", std::strerror(errno)));
  }
  if (is_unix_) take_descriptors(&header);
  is_at_end_ = has_orderly_end_ = count == 0;
  incoming_.append(std::span(buffer).first(static_cast<std::size_t>(count)));
  return count > 0;
}

std::optional<Message> Connection::try_receive() {
  for (;;) {
    if (auto message = next_message()) return message;
    if (is_at_end_) {
      fail(incoming_.is_empty() ? "closed the connection"
                                : "closed the connection in the middle of a message");
    }
    if (!read_some() && !is_at_end_) return std::nullopt;
  }
}

Message Connection::receive(Clock::time_point deadline) {
  for (;;) {
    if (auto message = try_receive()) return std::move(*message);
    if (now() >= deadline) {
      throw Error(ErrorCode::kDeadlineExceeded, fmt::format("{} sent no message in time", peer_));
    }
    std::vector<pollfd> polled{{fd(), POLLIN, 0}};
    wait_for(polled, deadline);
  }
}

void Connection::finish_sending() noexcept { ::shutdown(socket_.get(), SHUT_WR); }

void Connection::close() noexcept { socket_.reset(); }

}  // namespace onesum::cluster
