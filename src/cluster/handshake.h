// Two processes convince each other that they know the same secret, before either reads anything else.
//
// Everything here has a fixed size, whoever is at the other end:
//   caller    -> listener   greeting: magic, role, whether it has a secret, nonce, digest of the job's name
//   listener  -> caller     greeting, likewise
//   caller    -> listener   proof = HMAC-SHA256(secret, role, both greetings)
//   listener  -> caller     answer: whether the proof was right, and if so the listener's own proof
// The nonces are random and fresh on both sides and the roles are part of what is signed: nothing that was
// said in another handshake, or by the other side in this one, is of use. A listener says nothing to
// somebody whose greeting is not ours, and signs nothing for somebody who has not proved the secret.
// Without a secret (Unix sockets, where the kernel vouches for the user, and loopback) the key is empty: the
// proofs then show only that both speak this protocol. A side that has a secret refuses one that has none.
//
// What follows on the connection is neither encrypted nor signed (SECURITY.md).
//
// Never waits: whoever owns it polls its descriptor. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/secret.h"

namespace onesum::cluster {

// What a worker shows of itself.
struct Passport {
  std::optional<Secret> secret;
  std::string job;
};

class Handshake {
 public:
  enum class Role : std::uint8_t { kCaller = 1, kListener = 2 };
  enum class State : std::uint8_t {
    kUnderWay,
    kDone,
    kBroken,   // lost, or the other end does not speak this protocol; another try may fare better
    kRefused,  // the other end speaks it, and the secrets differ
  };
  static constexpr std::size_t kGreetingBytes = 80;
  static constexpr std::size_t kAnswerBytes = 40;

  // The passport must outlive the handshake.
  Handshake(Fd socket, Role role, const Passport& passport);

  // Goes on as far as is possible without waiting.
  State proceed();
  State state() const noexcept { return state_; }
  // What to poll fd() for.
  short events() const noexcept;
  int fd() const noexcept { return socket_.get(); }
  const Fd& socket() const noexcept { return socket_; }
  // Why it is kBroken or kRefused, as something that the other end did: "knows another secret".
  const std::string& reason() const noexcept { return reason_; }
  // When kDone: the socket, of which nothing was read that came after the handshake.
  Fd take_socket() { return std::move(socket_); }

 private:
  enum class Step : std::uint8_t { kGreeting, kProof, kAnswer };

  bool fill();   // reads until what is expected is complete
  bool drain();  // writes what is queued
  void expect(Step step, std::size_t bytes);
  void say(std::span<const std::byte> bytes);
  void hear();
  void hear_greeting();
  void hear_proof();
  void hear_answer();
  Digest proof_of(Role role) const;
  State end(State state, std::string reason);

  Fd socket_;
  Role role_;
  const Passport* passport_;
  State state_ = State::kUnderWay;
  std::string reason_;
  Step step_ = Step::kGreeting;
  std::vector<std::byte> own_greeting_;
  std::vector<std::byte> other_greeting_;
  std::vector<std::byte> outgoing_;
  std::vector<std::byte> incoming_;
  std::size_t num_sent_ = 0;
  std::size_t num_received_ = 0;
  std::optional<State> state_after_sending_;
};

}  // namespace onesum::cluster
