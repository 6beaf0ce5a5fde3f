// Stream sockets of the two kinds that workers meet over, Unix and TCP, as far as the rendezvous needs them.
//
// Every socket made here is non-blocking and closed on exec. What the operating system refuses comes back as
// an errno, because only the caller knows whether it is worth trying again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/place.h"

namespace onesum::cluster {

// An address as the socket calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  bool is_unix() const noexcept { return storage.ss_family == AF_UNIX; }
};

// An empty name: one that the kernel chooses when the socket is bound.
SocketAddress unix_address(const std::string& name);
// Of digits, not of a name; nullopt if it is none.
std::optional<SocketAddress> ip_address(const std::string& host, std::uint16_t port);
// All that the host's name stands for. May take as long as the name service does. Nothing found: empty, and
// `reason` says why.
std::vector<SocketAddress> resolve(const MeetingPlace& place, std::string& reason);
// Where this machine can be reached from others: of every interface that is up, but loopback and link-local
// ones; if there are none, the loopback address.
std::vector<MeetingPlace> addresses_of_this_machine(std::uint16_t port);

bool is_loopback(const SocketAddress& address) noexcept;
MeetingPlace place_of(const SocketAddress& address);
SocketAddress local_address(const Fd& socket);
SocketAddress peer_address(const Fd& socket);

// Of the process at the other end of a Unix socket when it connected or listened. nullopt for TCP.
struct Credentials {
  uid_t user = 0;
  pid_t process = 0;
};
std::optional<Credentials> peer_credentials(const Fd& socket);

// How messages name the other end: "10.0.0.2:4711", "process 4242 of user 1000".
std::string peer_name(const Fd& socket);

// A socket that listens, or the errno.
struct Made {
  Fd socket;
  int error = 0;
};
Made listen_at(const SocketAddress& address);
// On every address of this machine, of IPv6 and IPv4 if there is both.
Made listen_everywhere(std::uint16_t port);

// The next connection; EAGAIN if there is none.
Made accept_one(const Fd& listener);

// Begins to connect. Once the socket is writable, finish_connecting says how it went (0 is good).
Made start_connecting(const SocketAddress& address);
int finish_connecting(const Fd& socket);

// Small messages leave at once, and a machine that is gone is noticed. For sockets that are connected.
void set_options(const Fd& socket) noexcept;

// Waits until one of the descriptors is ready, the deadline has passed or a signal came; sometimes less. The
// caller of the call that this is part of may have it end (base/interrupt.h).
void wait_for(std::vector<pollfd>& polled, Clock::time_point deadline);

}  // namespace onesum::cluster
