#include "cluster/reception.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <onesum/error.h>

#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

// Of so many that all places are taken, only those that took this long lose theirs.
constexpr Clock::duration kLeastPatience = 1s;
constexpr Clock::duration kRest = 100ms;
constexpr std::size_t kMostCallers = 512;
constexpr int kMostWarnings = 20;

}  // namespace

Reception::Reception(const Passport& passport, std::string own_name, Clock::duration patience)
    : passport_(&passport), own_name_(std::move(own_name)), patience_(patience), limit_(kMostWarnings) {}

void Reception::listen(Fd listener) { listeners_.push_back(std::move(listener)); }

void Reception::close() noexcept {
  listeners_.clear();
  callers_.clear();
}

void Reception::warn(const std::string& peer, const std::string& reason) {
  if (!limit_.admits(LogLevel::kWarning)) return;
  limit_.log(LogLevel::kWarning, fmt::format("{} refused a connection: {} {}", own_name_, peer, reason));
}

void Reception::add_to(std::vector<pollfd>& polled) const {
  if (now() >= rests_until_ && !is_full()) {
    for (const Fd& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
  }
  for (const Caller& caller : callers_) {
    const bool is_connected = caller.connection.is_open();
    polled.push_back({is_connected ? caller.connection.fd() : caller.handshake.fd(),
                      is_connected ? static_cast<short>(POLLIN) : caller.handshake.events(), 0});
  }
}

Clock::time_point Reception::next_deadline() const noexcept {
  Clock::time_point result = Clock::time_point::max();
  if (!callers_.empty()) result = callers_.front().accepted + (is_full() ? kLeastPatience : patience_);
  if (rests_until_ > now()) result = std::min(result, rests_until_);
  return result;
}

bool Reception::is_full() const noexcept {
  return callers_.size() >= kMostCallers && now() < callers_.front().accepted + kLeastPatience;
}

std::vector<Arrival> Reception::serve() {
  accept_all();
  std::vector<Arrival> arrivals;
  std::erase_if(callers_, [&](Caller& caller) { return !serve(caller, arrivals); });
  return arrivals;
}

void Reception::accept_all() {
  if (now() < rests_until_) return;
  for (const Fd& listener : listeners_) accept_from(listener);
}

void Reception::accept_from(const Fd& listener) {
  for (std::size_t i = 0; i < kMostCallers && !is_full(); ++i) {
    Made made = accept_one(listener);
    if (!made.socket) {
      if (made.error == EAGAIN || made.error == EWOULDBLOCK) return;
      // No descriptors or memory left: an old caller gives way, and the queue waits a little.
      warn("a caller", fmt::format("could not be accepted: {}", std::strerror(made.error)));
      if (!callers_.empty()) callers_.pop_front();
      rests_until_ = now() + kRest;
      return;
    }
    std::string peer = peer_name(made.socket);
    const auto credentials = peer_credentials(made.socket);
    if (credentials && credentials->user != ::geteuid()) {
      warn(peer, fmt::format("is not of user {}", ::geteuid()));
      continue;
    }
    if (callers_.size() >= kMostCallers) {
      warn(callers_.front().peer, "was slow while many others came");
      callers_.pop_front();
    }
    set_options(made.socket);
    callers_.push_back({Handshake(std::move(made.socket), Handshake::Role::kListener, *passport_),
                        std::move(peer), now(), Connection()});
  }
}

bool Reception::serve(Caller& caller, std::vector<Arrival>& arrivals) {
  if (caller.connection.is_open()) return serve_connection(caller, arrivals);
  switch (caller.handshake.proceed()) {
    case Handshake::State::kUnderWay:
      if (now() < caller.accepted + patience_) return true;
      warn(caller.peer, "did not finish the handshake in time");
      return false;
    case Handshake::State::kBroken:
    case Handshake::State::kRefused:
      warn(caller.peer, caller.handshake.reason());
      return false;
    case Handshake::State::kDone:
      caller.connection = Connection(caller.handshake.take_socket(), caller.peer);
      return serve_connection(caller, arrivals);
  }
  return false;
}

bool Reception::serve_connection(Caller& caller, std::vector<Arrival>& arrivals) {
  try {
    auto message = caller.connection.try_receive();
    if (message) {
      arrivals.push_back({std::move(caller.connection), std::move(*message)});
      return false;
    }
  } catch (const Error& error) {
    warn("one that proved to belong here:", error.what());
    return false;
  }
  if (now() < caller.accepted + patience_) return true;
  warn(caller.peer, "did not say in time who it is");
  return false;
}

}  // namespace onesum::cluster
