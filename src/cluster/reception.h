// Who comes to a worker's listening sockets: connections are accepted, checked and let through when they have
// proved that they belong (handshake.h) and have sent their first message.
//
// Strangers change nothing: each connection has a few seconds, all are served side by side, when there are
// too many the slowest goes, and what is refused is logged with its address (a few times) and forgotten. Over
// a Unix socket the other end must be a process of this user, as the kernel says; root is no exception, since
// a worker that was started as another user was started by mistake.
//
// Never waits: the owner polls. Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "cluster/connection.h"
#include "cluster/handshake.h"

namespace onesum::cluster {

struct Arrival {
  Connection connection;  // its peer is named by address
  Message message;
};

class Reception {
 public:
  // The passport must outlive it. `own_name` ("rank 0") begins every message of the log.
  // `patience` is for one caller, from being accepted to the end of its first message: workers need
  // milliseconds, and call again if a machine is so slow that they need more.
  Reception(const Passport& passport, std::string own_name,
            Clock::duration patience = std::chrono::seconds(10));

  // One more socket to accept from.
  void listen(Fd listener);
  const std::vector<Fd>& listeners() const noexcept { return listeners_; }
  // No more connections; those under way are closed.
  void close() noexcept;

  void add_to(std::vector<pollfd>& polled) const;
  // When to call serve() even if no descriptor is ready.
  Clock::time_point next_deadline() const noexcept;
  // Does all that can be done without waiting.
  std::vector<Arrival> serve();

  // For one that was let through and turned out to be wrong.
  void warn(const std::string& peer, const std::string& reason);

 private:
  struct Caller {
    Handshake handshake;
    std::string peer;
    Clock::time_point accepted;
    Connection connection;  // open once the handshake is done
  };

  // Whether there are so many callers that others have to wait for a place.
  bool is_full() const noexcept;
  void accept_all();
  void accept_from(const Fd& listener);
  // Whether the caller stays under way; who has come whole is appended to `arrivals`.
  bool serve(Caller& caller, std::vector<Arrival>& arrivals);
  bool serve_connection(Caller& caller, std::vector<Arrival>& arrivals);

  const Passport* passport_;
  std::string own_name_;
  Clock::duration patience_;
  std::vector<Fd> listeners_;
  std::deque<Caller> callers_;  // oldest first
  Clock::time_point rests_until_ = Clock::time_point::min();
  LogLimit limit_;
};

}  // namespace onesum::cluster
