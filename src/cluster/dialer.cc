#include "cluster/dialer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <onesum/error.h>

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kFirstPause = 10ms;
constexpr Clock::duration kLongestPause = 250ms;
// For each address: to connect, and again to shake hands.
constexpr Clock::duration kPatience = 5s;

}  // namespace

Dialer::Dialer(std::string peer, Addresses addresses, const Passport& passport, int most_rounds)
    : peer_(std::move(peer)),
      addresses_(std::move(addresses)),
      passport_(&passport),
      rounds_left_(most_rounds),
      pause_(kFirstPause) {}

void Dialer::add_to(std::vector<pollfd>& polled) const {
  if (handshake_) {
    polled.push_back({handshake_->fd(), handshake_->events(), 0});
  } else if (calling_) {
    polled.push_back({calling_.get(), POLLOUT, 0});
  }
}

std::string Dialer::target() const { return to_string(place_of(targets_[next_target_])); }

std::optional<Connection> Dialer::proceed() {
  const bool is_late = now() >= wake_;
  if (!handshake_ && !calling_) {
    if (!is_late) return std::nullopt;
    start();
  }
  if (calling_) finish_call();
  if (handshake_) {
    if (auto connection = shake_hands()) return connection;
  }
  if (is_late && (calling_ || handshake_) && now() >= wake_) failed("no answer");
  return std::nullopt;
}

void Dialer::start() {
  if (targets_.empty()) {
    std::string reason = "no address";
    targets_ = addresses_(reason);
    next_target_ = 0;
    if (targets_.empty()) return failed(reason);
  }
  Made made = start_connecting(targets_[next_target_]);
  if (!made.socket) return failed(std::strerror(made.error));
  calling_ = std::move(made.socket);
  wake_ = now() + kPatience;
}

void Dialer::finish_call() {
  std::vector<pollfd> polled{{calling_.get(), POLLOUT, 0}};
  wait_for(polled, Clock::time_point::min());
  if (polled[0].revents == 0) return;
  if (const int error = finish_connecting(calling_); error != 0) return failed(std::strerror(error));
  check_user(calling_);
  set_options(calling_);
  handshake_.emplace(std::move(calling_), Handshake::Role::kCaller, *passport_);
  calling_ = Fd();
  wake_ = now() + kPatience;
}

void Dialer::check_user(const Fd& socket) const {
  const auto credentials = peer_credentials(socket);
  if (!credentials || credentials->user == ::geteuid()) return;
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("{} cannot be reached: {} belongs to process {} of user {}, expected user {}; another "
                  "user has taken the name",
                  peer_, target(), credentials->process, credentials->user, ::geteuid()));
}

std::optional<Connection> Dialer::shake_hands() {
  switch (handshake_->proceed()) {
    case Handshake::State::kUnderWay:
      return std::nullopt;
    case Handshake::State::kBroken:
      failed(handshake_->reason());
      return std::nullopt;
    case Handshake::State::kRefused:
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} at {} {}; all workers need the same ONESUM_SECRET or ONESUM_SECRET_FILE",
                              peer_, target(), handshake_->reason()));
    case Handshake::State::kDone:
      break;
  }
  const std::string name = fmt::format("{} ({})", peer_, peer_name(handshake_->socket()));
  Connection connection(handshake_->take_socket(), name);
  handshake_.reset();
  wake_ = Clock::time_point::max();
  return connection;
}

// By value: the reason may be the handshake's, which ends here.
void Dialer::failed(std::string reason) {
  calling_.reset();
  handshake_.reset();
  if (targets_.empty()) {
    last_failure_ = std::move(reason);
  } else {
    last_failure_ = fmt::format("{}: {}", target(), reason);
    ++next_target_;
  }
  wake_ = now();
  if (next_target_ < targets_.size()) return;
  targets_.clear();
  wake_ += pause_;
  pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
  if (rounds_left_ != kForEver) --rounds_left_;
  if (rounds_left_ == 0) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} cannot be reached: {}", peer_, last_failure_));
  }
}

}  // namespace onesum::cluster
