#include "cluster/side_connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "base/bytes.h"
#include "cluster/dialer.h"
#include "cluster/reception.h"
#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

// Between two looks at whether the epoch still lives.
constexpr std::chrono::milliseconds kLook{50};
constexpr std::uint16_t kWhoCalls = 1;  // the kind of a caller's only message

struct Invited {
  MeetingPlace place;
  std::string secret;
};

std::vector<std::byte> to_bytes(const Invited& invited) {
  ByteWriter out;
  out.text(invited.place.host);
  out.number(invited.place.port);
  out.text(invited.secret);
  return out.take();
}

Invited invited_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Invited invited;
  invited.place.host = in.text();
  invited.place.port = in.number<std::uint16_t>();
  invited.secret = in.text();
  return invited;
}

std::string make_secret() {
  std::array<std::byte, 32> random{};
  fill_with_random(random);
  std::string text;
  for (const std::byte byte : random) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Passport passport_of(const std::string& secret) { return {Secret::from_text(secret), "messages"}; }

class Connecting {
 public:
  Connecting(Epoch& epoch, std::span<const int> ranks, Clock::time_point deadline)
      : epoch_(epoch),
        deadline_(deadline),
        secret_(make_secret()),
        passport_(passport_of(secret_)),
        reception_(passport_, fmt::format("rank {}", epoch.rank())),
        others_(ranks.begin(), ranks.end()),
        sockets_(static_cast<std::size_t>(epoch.size())) {}

  std::vector<Fd> run() {
    invite();
    prepare_calls();
    for (go_on(); !is_complete(); go_on()) {
      check();
      wait();
    }
    reception_.close();
    await_others();
    return std::move(sockets_);
  }

 private:
  struct Call {
    Call(int whom, const std::string& name, const Invited& invited)
        : rank(whom),
          passport(passport_of(invited.secret)),
          dialer(
              name, [place = invited.place](std::string& reason) { return resolve(place, reason); },
              passport) {}

    int rank;
    Passport passport;  // the dialer's
    Dialer dialer;
  };

  Fd& socket_of(int rank) { return sockets_[static_cast<std::size_t>(rank)]; }
  bool calls(int rank) const { return rank > epoch_.rank(); }
  bool is_missing(int rank) const { return !sockets_[static_cast<std::size_t>(rank)].is_open(); }
  bool is_complete() const {
    return std::ranges::none_of(others_, [&](int rank) { return is_missing(rank); });
  }

  // The address of this machine that leads to it.
  std::string host_towards(int rank) const {
    const int seat = epoch_.group().seats[static_cast<std::size_t>(rank)];
    return epoch_.links().carries_descriptors(seat) ? "127.0.0.1" : epoch_.links().host_towards(seat);
  }

  void invite() {
    std::map<std::string, std::uint16_t> ports;  // by host
    for (const int rank : others_) {
      if (!calls(rank)) continue;
      const std::string host = host_towards(rank);
      if (!ports.contains(host)) ports[host] = listen(host);
      epoch_.send_set_up(rank, to_bytes({{.host = host, .port = ports[host]}, secret_}));
    }
  }

  std::uint16_t listen(const std::string& host) {
    const auto address = ip_address(host, 0);
    Made made = address ? listen_at(*address) : Made{Fd(), EADDRNOTAVAIL};
    if (!made.socket) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} cannot listen for messages on {}: {}", epoch_.name_of(epoch_.rank()), host,
                              std::strerror(made.error)));
    }
    const std::uint16_t port = place_of(local_address(made.socket)).port;
    reception_.listen(std::move(made.socket));
    return port;
  }

  void prepare_calls() {
    for (const int rank : others_) {
      if (calls(rank)) continue;
      const Invited invited = invited_from(epoch_.receive_set_up(rank, deadline_).payload);
      calls_.emplace_back(rank, epoch_.name_of(rank), invited);
    }
  }

  void go_on() {
    for (Call& call : calls_) {
      if (!is_missing(call.rank)) continue;
      auto connection = call.dialer.proceed();
      if (!connection) continue;
      ByteWriter own;
      own.number(static_cast<std::uint32_t>(epoch_.rank()));
      connection->send(kWhoCalls, own.take(), deadline_);
      socket_of(call.rank) = connection->take_socket();
    }
    for (Arrival& arrival : reception_.serve()) admit(std::move(arrival));
  }

  void admit(Arrival arrival) {
    const int rank = rank_of(arrival.message);
    const bool is_one_of_us = std::ranges::find(others_, rank) != others_.end();
    if (is_one_of_us && calls(rank) && is_missing(rank)) {
      socket_of(rank) = arrival.connection.take_socket();
    } else {
      reception_.warn(arrival.connection.peer(), "is nobody who was asked to call");
    }
  }

  // -1: it says nothing that makes sense.
  static int rank_of(const Message& message) {
    if (message.payload.size() != sizeof(std::uint32_t)) return -1;
    return static_cast<int>(ByteReader(message.payload).number<std::uint32_t>());
  }

  void check() {
    epoch_.check();
    for (const int rank : others_) {
      // Which throws that it has left.
      if (is_missing(rank) && epoch_.sighting(rank).has_left) epoch_.receive_set_up(rank, now());
    }
    if (now() >= deadline_) throw_late();
  }

  [[noreturn]] void throw_late() const {
    std::vector<std::string> whom;
    for (const Call& call : calls_) {
      if (is_missing(call.rank)) {
        whom.push_back(fmt::format("{} ({})", epoch_.name_of(call.rank), call.dialer.last_failure()));
      }
    }
    for (const int rank : others_) {
      if (calls(rank) && is_missing(rank)) whom.push_back(epoch_.name_of(rank) + " (which did not call)");
    }
    throw Error(ErrorCode::kDeadlineExceeded,
                fmt::format("{} has no connection for messages with {}; does a firewall stand between?",
                            epoch_.name_of(epoch_.rank()), fmt::join(whom, ", ")));
  }

  void wait() {
    std::vector<pollfd> polled;
    Clock::time_point until = std::min({deadline_, now() + kLook, reception_.next_deadline()});
    reception_.add_to(polled);
    for (const Call& call : calls_) {
      if (!is_missing(call.rank)) continue;
      call.dialer.add_to(polled);
      until = std::min(until, call.dialer.next_deadline());
    }
    wait_for(polled, until);
  }

  // What came with a caller's name would be lost, so that nobody sends before all have taken their sockets.
  void await_others() {
    for (const int rank : others_) epoch_.send_set_up(rank, {});
    for (const int rank : others_) epoch_.receive_set_up(rank, deadline_);
  }

  Epoch& epoch_;
  const Clock::time_point deadline_;
  const std::string secret_;
  const Passport passport_;
  Reception reception_;
  std::vector<int> others_;
  std::deque<Call> calls_;  // stay where they are
  std::vector<Fd> sockets_;
};

}  // namespace

std::vector<Fd> connect_beside_links(Epoch& epoch, std::span<const int> ranks, Clock::time_point deadline) {
  return Connecting(epoch, ranks, deadline).run();
}

}  // namespace onesum::cluster
