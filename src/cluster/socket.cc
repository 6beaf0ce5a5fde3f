#include "cluster/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include "base/interrupt.h"
#include "base/text.h"

namespace onesum::cluster {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes less if it must

SocketAddress copied(const sockaddr* address, socklen_t length) {
  SocketAddress result;
  result.length = std::min<socklen_t>(length, sizeof(result.storage));
  std::memcpy(&result.storage, address, result.length);
  return result;
}

template <class T>
SocketAddress made_of(const T& address) {
  return copied(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

template <class T>
T as(const SocketAddress& address) {
  T result{};
  std::memcpy(&result, &address.storage, sizeof(result));
  return result;
}

// Sockets that listen on both families show IPv4 peers as IPv6 addresses.
SocketAddress without_mapping(const SocketAddress& address) {
  if (address.storage.ss_family != AF_INET6) return address;
  const auto v6 = as<sockaddr_in6>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
  return made_of(v4);
}

std::string unix_name_of(const SocketAddress& address) {
  const auto name = as<sockaddr_un>(address);
  constexpr std::size_t kBegin = offsetof(sockaddr_un, sun_path) + 1;  // after the 0 of an abstract name
  return address.length <= kBegin ? std::string() : std::string(name.sun_path + 1, address.length - kBegin);
}

void set(const Fd& socket, int level, int option, int value) noexcept {
  ::setsockopt(socket.get(), level, option, &value, sizeof(value));
}

Made made_socket(int family) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int error = socket ? 0 : errno;
  return {std::move(socket), error};
}

Made bound_and_listening(Fd socket, const SocketAddress& address) {
  if (::bind(socket.get(), address.get(), address.length) != 0) return {Fd(), errno};
  if (::listen(socket.get(), kBacklog) != 0) return {Fd(), errno};
  return {std::move(socket), 0};
}

bool is_useful(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0 || (entry.ifa_flags & IFF_LOOPBACK) != 0) {
    return false;
  }
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  if (entry.ifa_addr->sa_family != AF_INET6) return false;
  const auto v6 = as<sockaddr_in6>(copied(entry.ifa_addr, sizeof(sockaddr_in6)));
  return !IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

}  // namespace

SocketAddress unix_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  SocketAddress result = made_of(address);
  // Bound with the family alone, a socket is given an unused name (man 7 unix, autobind).
  result.length = name.empty() ? sizeof(sa_family_t)
                               : static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return result;
}

std::optional<SocketAddress> ip_address(const std::string& host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) return made_of(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) return made_of(v6);
  return std::nullopt;
}

std::vector<SocketAddress> resolve(const MeetingPlace& place, std::string& reason) {
  if (place.is_unix()) return {unix_address(place.unix_name)};
  if (const auto address = ip_address(place.host, place.port)) return {*address};
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found);
  if (error != 0) {
    reason = fmt::format("host {}: {}", quoted(place.host), gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed_at_end(found, &freeaddrinfo);
  std::vector<SocketAddress> result;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    result.push_back(copied(entry->ai_addr, entry->ai_addrlen));
  }
  return result;
}

std::vector<MeetingPlace> addresses_of_this_machine(std::uint16_t port) {
  std::vector<MeetingPlace> result;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> freed_at_end(found, &freeifaddrs);
    for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
      if (!is_useful(*entry)) continue;
      const bool is_v4 = entry->ifa_addr->sa_family == AF_INET;
      MeetingPlace place =
          place_of(copied(entry->ifa_addr, is_v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
      place.port = port;
      result.push_back(std::move(place));
    }
  }
  if (result.empty()) result.push_back({.host = "127.0.0.1", .port = port});
  return result;
}

bool is_loopback(const SocketAddress& address) noexcept {
  const SocketAddress plain = without_mapping(address);
  if (plain.storage.ss_family == AF_INET) return ntohl(as<sockaddr_in>(plain).sin_addr.s_addr) >> 24 == 127;
  if (plain.storage.ss_family != AF_INET6) return true;
  const auto v6 = as<sockaddr_in6>(plain);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

MeetingPlace place_of(const SocketAddress& address) {
  const SocketAddress plain = without_mapping(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (plain.storage.ss_family == AF_INET) {
    const auto v4 = as<sockaddr_in>(plain);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {.host = text.data(), .port = ntohs(v4.sin_port)};
  }
  if (plain.storage.ss_family == AF_INET6) {
    const auto v6 = as<sockaddr_in6>(plain);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return {.host = text.data(), .port = ntohs(v6.sin6_port)};
  }
  return {.unix_name = unix_name_of(plain)};
}

SocketAddress local_address(const Fd& socket) {
  SocketAddress result;
  result.length = sizeof(result.storage);
  if (::getsockname(socket.get(), result.get(), &result.length) != 0) result.length = 0;
  return result;
}

SocketAddress peer_address(const Fd& socket) {
  SocketAddress result;
  result.length = sizeof(result.storage);
  if (::getpeername(socket.get(), result.get(), &result.length) != 0) result.length = 0;
  return result;
}

std::optional<Credentials> peer_credentials(const Fd& socket) {
  if (!local_address(socket).is_unix()) return std::nullopt;
  ucred found{};
  socklen_t length = sizeof(found);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return std::nullopt;
  return Credentials{found.uid, found.pid};
}

std::string peer_name(const Fd& socket) {
  if (const auto credentials = peer_credentials(socket)) {
    return fmt::format("process {} of user {}", credentials->process, credentials->user);
  }
  return to_string(place_of(peer_address(socket)));
}

Made listen_at(const SocketAddress& address) {
  Made made = made_socket(address.storage.ss_family);
  if (!made.socket) return made;
  if (!address.is_unix()) set(made.socket, SOL_SOCKET, SO_REUSEADDR, 1);
  return bound_and_listening(std::move(made.socket), address);
}

Made listen_everywhere(std::uint16_t port) {
  Made made = made_socket(AF_INET6);
  if (made.socket) {
    set(made.socket, SOL_SOCKET, SO_REUSEADDR, 1);
    set(made.socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    made = bound_and_listening(std::move(made.socket), *ip_address("::", port));
  }
  const bool has_no_v6 = made.error == EAFNOSUPPORT || made.error == EADDRNOTAVAIL;
  return has_no_v6 ? listen_at(*ip_address("0.0.0.0", port)) : std::move(made);
}

Made accept_one(const Fd& listener) {
  for (;;) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) return {std::move(socket), 0};
    // A connection that broke before it was accepted is none; the next may be waiting.
    if (errno != EINTR && errno != ECONNABORTED) return {Fd(), errno};
  }
}

Made start_connecting(const SocketAddress& address) {
  Made made = made_socket(address.storage.ss_family);
  if (!made.socket) return made;
  if (::connect(made.socket.get(), address.get(), address.length) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return {Fd(), errno};
  }
  return made;
}

int finish_connecting(const Fd& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void set_options(const Fd& socket) noexcept {
  if (local_address(socket).is_unix()) return;
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

void wait_for(std::vector<pollfd>& polled, Clock::time_point deadline) {
  using std::chrono::milliseconds;
  const Clock::time_point start = now();
  if (deadline <= start) {
    ::poll(polled.data(), polled.size(), 0);
    return;
  }
  // Rounded up, so that nobody wakes just before the deadline, again and again; bounded, so that it fits.
  const auto left =
      std::chrono::ceil<milliseconds>(std::min<Clock::duration>(deadline - start, std::chrono::hours(1)));
  const auto longest = is_interruptible() ? std::min(left, kInterruptInterval) : left;
  ::poll(polled.data(), polled.size(), static_cast<int>(longest.count()));
  check_interrupt();
}

}  // namespace onesum::cluster
