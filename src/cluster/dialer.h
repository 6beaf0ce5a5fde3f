// One connection to a worker that listens: tries its addresses in turn, again and again, until one leads to a
// process that knows the secret (handshake.h).
//
// Nobody listening, a connection that breaks or somebody who speaks another protocol is worth another try. A
// process that speaks our protocol and has another secret is not, nor is a Unix socket that belongs to
// another user (root is no exception, see reception.h): nothing is said to it.
//
// Never waits, but for the name service: the owner polls. Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/clock.h"
#include "cluster/connection.h"
#include "cluster/handshake.h"
#include "cluster/socket.h"

namespace onesum::cluster {

class Dialer {
 public:
  // Asked before each round of tries; if it finds nothing, it says why.
  using Addresses = std::function<std::vector<SocketAddress>(std::string& reason)>;
  static constexpr int kForEver = std::numeric_limits<int>::max();

  // `peer` names the other end in errors: "worker 0". The passport must outlive it.
  Dialer(std::string peer, Addresses addresses, const Passport& passport, int most_rounds = kForEver);

  void add_to(std::vector<pollfd>& polled) const;
  // When to call proceed() even if the descriptor is not ready.
  Clock::time_point next_deadline() const noexcept { return wake_; }
  // The connection, once there is one. Throws invalid_argument if the secrets differ, unavailable if another
  // user holds the socket or all rounds failed.
  std::optional<Connection> proceed();

  // Why there is no connection yet: "10.0.0.1:4711: Connection refused".
  const std::string& last_failure() const noexcept { return last_failure_; }

 private:
  void start();
  void failed(std::string reason);
  void check_user(const Fd& socket) const;
  void finish_call();
  std::optional<Connection> shake_hands();
  std::string target() const;

  std::string peer_;
  Addresses addresses_;
  const Passport* passport_;
  int rounds_left_;
  std::vector<SocketAddress> targets_;
  std::size_t next_target_ = 0;
  Fd calling_;                          // a connection that is being made
  std::optional<Handshake> handshake_;  // once it is made
  Clock::time_point wake_ = Clock::time_point::min();
  Clock::duration pause_;
  std::string last_failure_ = "not tried yet";
};

}  // namespace onesum::cluster
