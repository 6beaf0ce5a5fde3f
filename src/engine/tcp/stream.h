// The connection to one peer, as messages that lie where they lie: they are sent from any memory, in their
// order, and received into whatever memory a sink says. Nothing is copied but what comes together with a
// header.
//
// No function blocks. Errors: a connection that ended or broke gives nothing any more, and says why; what is
// sent is lost. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/uio.h>

#include "base/fd.h"
#include "engine/tcp/wire.h"

namespace onesum::engine::tcp {

// Memory in several places. What was sent from there or received there is skipped.
class Parts {
 public:
  void clear() noexcept;
  void add(const void* memory, std::size_t bytes);
  bool are_empty() const noexcept { return first_ == parts_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }  // that are left
  // Of what is left.
  iovec* begin() noexcept { return parts_.data() + first_; }
  std::size_t count() const noexcept { return parts_.size() - first_; }
  void skip(std::size_t bytes) noexcept;

 private:
  std::vector<iovec> parts_;
  std::size_t first_ = 0;
  std::size_t bytes_ = 0;
};

// A message on its way out: stays where it is until it is sent.
struct Outgoing {
  Parts parts;
  std::size_t* unsent = nullptr;  // a count of messages, one less when this one is sent, or lost
  Outgoing* next = nullptr;       // the stream's
};

// Knows where messages belong.
class Sink {
 public:
  virtual ~Sink() = default;
  // A message begins: where its payload is to go. False: it cannot be one, and nothing more is read.
  virtual bool begin(const Header& header, Parts& payload) = 0;
  // It is there.
  virtual void end(const Header& header) = 0;
};

class Stream {
 public:
  Stream();  // to nobody
  // A socket that is connected.
  explicit Stream(Fd socket);

  int fd() const noexcept { return socket_.get(); }
  // Whether something may still come. What is sent may be lost without a word even then.
  bool is_open() const noexcept { return socket_.is_open() && failure_.empty(); }
  // Why nothing comes any more; empty: it may, or the stream is to nobody.
  const std::string& failure() const noexcept { return failure_; }
  // What came over it was no message.
  bool is_corrupt() const noexcept { return is_corrupt_; }

  // Sends what the socket takes, after what is on its way already.
  void send(Outgoing& message);
  // Whether it took anything, or takes nothing any more.
  bool push();
  bool has_unsent() const noexcept { return first_ != nullptr; }

  // Reads what is there. Whether anything was, if only the end.
  bool pull(Sink& sink);

  // Whether the machine of the other end has all that was sent.
  bool has_arrived() const noexcept;
  // Throws away what came: a socket that is closed with something unread takes back what is still on its way.
  void drain() noexcept;
  void close() noexcept { socket_.reset(); }

 private:
  // What comes with a header: small messages need one call of the system only.
  static constexpr std::size_t kStaged = 8192;

  void take_staged(Sink& sink, std::size_t bytes);
  void end_message(Sink& sink);
  void fail(const std::string& how);
  void lose_unsent() noexcept;

  Fd socket_;
  std::string failure_;
  bool is_corrupt_ = false;
  bool has_receiver_ = true;   // of what is sent, as far as is known
  Outgoing* first_ = nullptr;  // unsent
  Outgoing* last_ = nullptr;
  Header header_;
  std::size_t header_bytes_ = 0;  // of it that have come
  Parts payload_;                 // where what is missing of it goes
  std::vector<std::byte> staged_;
};

}  // namespace onesum::engine::tcp
