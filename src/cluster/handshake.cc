#include "cluster/handshake.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/bytes.h"

namespace onesum::cluster {
namespace {

constexpr std::string_view kMagic("onesum\0\1", 8);
constexpr std::size_t kNonceBytes = 32;
// Where the greeting's fields are.
constexpr std::size_t kRoleAt = 8;
constexpr std::size_t kHasSecretAt = 9;
constexpr std::size_t kNonceAt = 16;
static_assert(kNonceAt + kNonceBytes + sizeof(Digest) == Handshake::kGreetingBytes);
// And the answer's: whether the caller was let in, and the proof.
constexpr std::size_t kProofAt = 8;
static_assert(kProofAt + sizeof(Digest) == Handshake::kAnswerBytes);

bool would_wait(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Handshake::Role other(Handshake::Role role) {
  return role == Handshake::Role::kCaller ? Handshake::Role::kListener : Handshake::Role::kCaller;
}

Digest as_digest(std::span<const std::byte> bytes) {
  Digest digest;
  std::ranges::copy(bytes.first(digest.size()), digest.begin());
  return digest;
}

}  // namespace

Handshake::Handshake(Fd socket, Role role, const Passport& passport)
    : socket_(std::move(socket)), role_(role), passport_(&passport), own_greeting_(kGreetingBytes) {
  std::ranges::copy(std::as_bytes(std::span(kMagic)), own_greeting_.begin());
  own_greeting_[kRoleAt] = static_cast<std::byte>(role_);
  own_greeting_[kHasSecretAt] = static_cast<std::byte>(passport_->secret ? 1 : 0);
  fill_with_random(std::span(own_greeting_).subspan(kNonceAt, kNonceBytes));
  const Digest job = digest_of(std::as_bytes(std::span(passport_->job)));
  std::ranges::copy(job, own_greeting_.begin() + kNonceAt + kNonceBytes);
  if (role_ == Role::kCaller) say(own_greeting_);
  expect(Step::kGreeting, kGreetingBytes);
}

void Handshake::expect(Step step, std::size_t bytes) {
  step_ = step;
  incoming_.resize(bytes);
  num_received_ = 0;
}

void Handshake::say(std::span<const std::byte> bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

Handshake::State Handshake::end(State state, std::string reason) {
  reason_ = std::move(reason);
  return state_ = state;
}

short Handshake::events() const noexcept { return num_sent_ < outgoing_.size() ? POLLOUT : POLLIN; }

Handshake::State Handshake::proceed() {
  while (state_ == State::kUnderWay) {
    if (!drain()) break;
    if (state_after_sending_) {
      state_ = *state_after_sending_;
      break;
    }
    if (!fill()) break;
    hear();
  }
  return state_;
}

bool Handshake::drain() {
  while (num_sent_ < outgoing_.size()) {
    const ssize_t count =
        ::send(socket_.get(), outgoing_.data() + num_sent_, outgoing_.size() - num_sent_, MSG_NOSIGNAL);
    if (count < 0) {
      if (!would_wait(errno)) end(State::kBroken, "closed the connection during the handshake");
      return false;
    }
    num_sent_ += static_cast<std::size_t>(count);
  }
  return true;
}

bool Handshake::fill() {
  while (num_received_ < incoming_.size()) {
    const ssize_t count =
        ::recv(socket_.get(), incoming_.data() + num_received_, incoming_.size() - num_received_, 0);
    if (count < 0 && would_wait(errno)) return false;
    if (count <= 0) {
      end(State::kBroken, num_received_ == 0 && step_ == Step::kGreeting
                              ? "closed the connection without a word"
                              : "closed the connection during the handshake");
      return false;
    }
    num_received_ += static_cast<std::size_t>(count);
    // Who does not begin as we do is not waited for.
    const std::size_t compared = std::min(num_received_, kMagic.size());
    if (step_ == Step::kGreeting && std::memcmp(incoming_.data(), kMagic.data(), compared) != 0) {
      end(State::kBroken, "does not speak onesum's protocol");
      return false;
    }
  }
  return true;
}

void Handshake::hear() {
  switch (step_) {
    case Step::kGreeting:
      return hear_greeting();
    case Step::kProof:
      return hear_proof();
    case Step::kAnswer:
      return hear_answer();
  }
}

void Handshake::hear_greeting() {
  other_greeting_ = incoming_;
  if (other_greeting_[kRoleAt] != static_cast<std::byte>(other(role_))) {
    end(State::kBroken, "does not speak onesum's protocol");
    return;
  }
  if (role_ == Role::kListener) say(own_greeting_);
  const bool other_has_secret = other_greeting_[kHasSecretAt] != std::byte{0};
  if (other_has_secret != passport_->secret.has_value()) {
    reason_ = other_has_secret ? "has a secret, and this worker has none"
                               : "has no secret, and this worker has one";
    state_after_sending_ = State::kRefused;
  } else if (role_ == Role::kListener) {
    expect(Step::kProof, sizeof(Digest));
  } else {
    say(proof_of(Role::kCaller));
    expect(Step::kAnswer, kAnswerBytes);
  }
}

void Handshake::hear_proof() {
  std::array<std::byte, kAnswerBytes> answer{};
  const bool is_right = is_same(as_digest(incoming_), proof_of(Role::kCaller));
  if (is_right) {
    answer[0] = std::byte{1};
    std::ranges::copy(proof_of(Role::kListener), answer.begin() + kProofAt);
  } else {
    reason_ = "knows another secret";
  }
  state_after_sending_ = is_right ? State::kDone : State::kRefused;
  say(answer);
}

void Handshake::hear_answer() {
  const Digest proof = as_digest(std::span(incoming_).subspan(kProofAt));
  if (incoming_[0] == std::byte{1} && is_same(proof, proof_of(Role::kListener))) {
    state_ = State::kDone;
  } else {
    end(State::kRefused, "knows another secret");
  }
}

Digest Handshake::proof_of(Role role) const {
  const bool is_caller = role_ == Role::kCaller;
  ByteWriter signed_text;
  signed_text.number(static_cast<std::uint8_t>(role));
  signed_text.raw(is_caller ? own_greeting_ : other_greeting_);
  signed_text.raw(is_caller ? other_greeting_ : own_greeting_);
  const std::span<const std::byte> key =
      passport_->secret ? passport_->secret->key() : std::span<const std::byte>();
  return sign(key, signed_text.take());
}

}  // namespace onesum::cluster
