// Messages to and from one other worker, over a Unix or TCP socket.
//
// Either wait (send, receive, with a deadline) or never wait (queue and flush, try_receive) and poll fd():
// for reading always, for writing while has_unsent(). Both may be mixed. Messages arrive whole and in order;
// over a Unix socket they can carry file descriptors. A message that was never read completely is never seen.
//
// Errors name the other end. A lost connection is `unavailable`, also when the other end breaks the rules of
// frames.h; a deadline that passes is `deadline_exceeded`. After an error the connection is of no use.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/frames.h"

namespace onesum::cluster {

struct Message {
  std::uint16_t kind = 0;
  std::vector<std::byte> payload;
  std::vector<Fd> descriptors;
};

class Connection {
 public:
  Connection() = default;  // to nobody
  // Takes a socket that is connected and does not block. `peer` is how errors name the other end:
  // "rank 2 (10.0.0.2:4711)".
  Connection(Fd socket, std::string peer);

  bool is_open() const noexcept { return static_cast<bool>(socket_); }
  int fd() const noexcept { return socket_.get(); }
  const Fd& socket() const noexcept { return socket_; }
  const std::string& peer() const noexcept { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  // Whether messages can carry descriptors.
  bool is_unix() const noexcept { return is_unix_; }

  // At most kMostPayloadBytes and kMostDescriptors, the latter over Unix sockets only: otherwise
  // invalid_argument. The descriptors are duplicated; the caller keeps its own.
  void queue(std::uint16_t kind, std::span<const std::byte> payload, std::span<const int> descriptors = {});
  // Writes what the socket takes. True if nothing is left.
  bool flush();
  bool has_unsent() const noexcept { return !unsent_.empty(); }
  void send(std::uint16_t kind, std::span<const std::byte> payload, Clock::time_point deadline,
            std::span<const int> descriptors = {});

  // The next message if it has come whole. Complete messages come before the error of a lost connection.
  std::optional<Message> try_receive();
  Message receive(Clock::time_point deadline);

  // For a connection that was lost: whether the other end closed it, as the kernel there does for a process
  // that ends; a network alone cannot make it look so.
  bool has_orderly_end() const noexcept { return has_orderly_end_; }

  // The other end will read everything that was flushed, then the end.
  void finish_sending() noexcept;
  void close() noexcept;
  // What was read ahead is lost.
  Fd take_socket() noexcept { return std::move(socket_); }

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    std::size_t num_sent = 0;
    std::vector<Fd> descriptors;  // go with the first byte
  };

  std::optional<Message> next_message();
  bool read_some();
  void write_some(Outgoing& message);
  void take_descriptors(const void* header);
  [[noreturn]] void fail(const std::string& what) const;

  Fd socket_;
  std::string peer_;
  bool is_unix_ = false;
  bool is_at_end_ = false;
  bool has_orderly_end_ = false;
  FrameBuffer incoming_;
  std::deque<Fd> incoming_descriptors_;  // in the order of the messages that claim them
  std::deque<Outgoing> unsent_;
};

}  // namespace onesum::cluster
