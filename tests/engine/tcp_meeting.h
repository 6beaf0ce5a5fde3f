// Ranks that meet over TCP on loopback, for tests.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "engine/tcp/tcp_transport.h"
#include "engine/transport_ranks.h"

namespace onesum::engine::testing {

// Two ends of a connection, which do not block.
inline std::pair<Fd, Fd> connected_sockets() {
  const auto require = [](bool holds) {
    if (!holds) throw std::runtime_error("no connection over loopback");
  };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  require(::bind(listener.get(), any, length) == 0 && ::listen(listener.get(), 1) == 0 &&
          ::getsockname(listener.get(), any, &length) == 0);
  Fd caller(::socket(AF_INET, SOCK_STREAM, 0));
  require(::connect(caller.get(), any, length) == 0);
  Fd callee(::accept(listener.get(), nullptr, nullptr));
  require(callee.is_open());
  for (const Fd* end : {&caller, &callee}) require(::fcntl(end->get(), F_SETFL, O_NONBLOCK) == 0);
  return {std::move(caller), std::move(callee)};
}

class TcpMeeting final : public Meeting {
 public:
  explicit TcpMeeting(tcp::TcpOptions options) : options_(options) {
    const auto size = static_cast<std::size_t>(options.size);
    sockets_.resize(size);
    for (std::vector<Fd>& of_rank : sockets_) of_rank.resize(size);
    for (std::size_t a = 0; a < size; ++a) {
      for (std::size_t b = a + 1; b < size; ++b) {
        std::tie(sockets_[a][b], sockets_[b][a]) = connected_sockets();
      }
    }
  }

  std::unique_ptr<Transport> join(int rank) override { return join_tcp(rank); }
  std::unique_ptr<tcp::TcpTransport> join_tcp(int rank) {
    tcp::TcpOptions options = options_;
    options.rank = rank;
    return std::make_unique<tcp::TcpTransport>(options, std::move(sockets_[static_cast<std::size_t>(rank)]));
  }

 private:
  tcp::TcpOptions options_;
  std::vector<std::vector<Fd>> sockets_;  // by rank, then by peer
};

inline TransportUnderTest over_tcp(RanksAre ranks_are, bool checksums) {
  const std::string name = ranks_are == RanksAre::kThreads ? "threads" : "processes";
  return {.name = name + (checksums ? "_checked" : ""),
          .ranks_are = ranks_are,
          .meet = [checksums](int size, const Limits& limits) {
            return std::make_unique<TcpMeeting>(
                tcp::TcpOptions{.size = size, .limits = limits, .checksums = checksums});
          }};
}

}  // namespace onesum::engine::testing
