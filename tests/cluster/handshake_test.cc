// Who knows the secret gets through, and nothing else does: neither what was said before nor what is said
// back.
#include "cluster/handshake.h"

#include <array>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "cluster/meetings.h"

namespace onesum::cluster {
namespace {

using testing::kSecret;
using Role = Handshake::Role;
using State = Handshake::State;

const Passport kMember{Secret::from_text(kSecret), "job"};
const Passport kOtherSecret{Secret::from_text("another secret that is long enough"), "job"};
const Passport kNoSecret{std::nullopt, "job"};
const Passport kOtherJob{Secret::from_text(kSecret), "another job"};

// A handshake whose other end is in the test's hands.
class Side {
 public:
  Side(Role role, const Passport& passport) : Side(role, passport, pair()) {}

  State proceed() { return handshake_.proceed(); }
  std::string heard() {  // what it has said since
    std::array<char, 1024> buffer;
    const ssize_t count = ::recv(end_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return count <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(count));
  }
  State say(std::string_view bytes) {
    EXPECT_EQ(::send(end_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return proceed();
  }
  State hang_up() {
    end_.reset();
    return proceed();
  }
  const Handshake& handshake() const { return handshake_; }

 private:
  static std::pair<Fd, Fd> pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {Fd(ends[0]), Fd(ends[1])};
  }
  Side(Role role, const Passport& passport, std::pair<Fd, Fd> ends)
      : end_(std::move(ends.second)), handshake_(std::move(ends.first), role, passport) {
    proceed();
  }

  Fd end_;
  Handshake handshake_;
};

// What each side said, message by message.
struct Record {
  State caller = State::kUnderWay;
  State listener = State::kUnderWay;
  std::array<std::string, 2> of_caller;    // greeting, proof
  std::array<std::string, 2> of_listener;  // greeting, answer
};

Record recorded(const Passport& calling, const Passport& listening) {
  Side caller(Role::kCaller, calling);
  Side listener(Role::kListener, listening);
  Record record;
  for (int i = 0; i < 2; ++i) {
    record.of_caller[i] = caller.heard();
    record.listener = listener.say(record.of_caller[i]);
    record.of_listener[i] = listener.heard();
    record.caller = caller.say(record.of_listener[i]);
  }
  return record;
}

TEST(HandshakeTest, WhoSharesTheSecretGetsThrough) {
  for (const Passport* passport : {&kMember, &kNoSecret}) {
    const Record record = recorded(*passport, *passport);
    EXPECT_EQ(record.caller, State::kDone);
    EXPECT_EQ(record.listener, State::kDone);
    EXPECT_EQ(record.of_caller[0].size(), Handshake::kGreetingBytes);
    EXPECT_EQ(record.of_listener[0].size(), Handshake::kGreetingBytes);
    EXPECT_EQ(record.of_caller[1].size(), sizeof(Digest));
    EXPECT_EQ(record.of_listener[1].size(), Handshake::kAnswerBytes);
  }
}

TEST(HandshakeTest, TheJobsMayDifferAndAreComparedLater) {
  EXPECT_EQ(recorded(kMember, kOtherJob).caller, State::kDone);
}

TEST(HandshakeTest, AnotherSecretOrNoneIsRefusedByBoth) {
  for (const auto& [calling, listening] : {std::pair(&kMember, &kOtherSecret),
                                           {&kOtherSecret, &kMember},
                                           {&kMember, &kNoSecret},
                                           {&kNoSecret, &kMember}}) {
    const Record record = recorded(*calling, *listening);
    EXPECT_EQ(record.caller, State::kRefused);
    EXPECT_EQ(record.listener, State::kRefused);
    // The listener has signed nothing.
    if (!record.of_listener[1].empty()) {
      EXPECT_EQ(record.of_listener[1], std::string(Handshake::kAnswerBytes, '\0'));
    }
  }
}

TEST(HandshakeTest, AReplayIsOfNoUse) {
  const Record good = recorded(kMember, kMember);
  Side listener(Role::kListener, kMember);
  EXPECT_EQ(listener.say(good.of_caller[0]), State::kUnderWay);
  EXPECT_EQ(listener.say(good.of_caller[1]), State::kRefused);
  Side caller(Role::kCaller, kMember);
  EXPECT_EQ(caller.say(good.of_listener[0]), State::kUnderWay);
  EXPECT_EQ(caller.say(good.of_listener[1]), State::kRefused);
  // Nor is a greeting replayed while somebody else's proof is fresh: each signs both greetings.
  Side other(Role::kCaller, kMember);
  Side fresh(Role::kListener, kMember);
  fresh.say(good.of_caller[0]);
  other.say(fresh.heard());
  other.heard();  // its greeting, which was not passed on
  Side honest(Role::kCaller, kMember);
  honest.heard();
  Side target(Role::kListener, kMember);
  target.say(good.of_caller[0]);
  honest.say(target.heard());
  EXPECT_EQ(target.say(honest.heard()), State::kRefused);
}

TEST(HandshakeTest, WhatASideSaidItselfIsOfNoUse) {
  Side caller(Role::kCaller, kMember);
  EXPECT_EQ(caller.say(caller.heard()), State::kBroken);
  // Two callers played against each other, with the role forged: neither's proof is a listener's.
  Side first(Role::kCaller, kMember);
  Side second(Role::kCaller, kMember);
  std::string one = first.heard();
  std::string two = second.heard();
  one[8] = two[8] = 2;
  first.say(two);
  second.say(one);
  EXPECT_EQ(first.say('\1' + std::string(7, '\0') + second.heard()), State::kRefused);
}

TEST(HandshakeTest, EveryBitCounts) {
  // Bits of what is signed, and of the proofs. The reserved bytes are signed, too.
  std::minstd_rand random(7);
  for (int i = 0; i < 200; ++i) {
    Side caller(Role::kCaller, kMember);
    Side listener(Role::kListener, kMember);
    const unsigned message = random() % 4;
    const auto changed = [&](unsigned number, std::string bytes) {
      if (number == message && !bytes.empty()) {
        const std::size_t bit = random() % (8 * bytes.size());
        const bool is_reserved_of_answer = number == 3 && bit / 8 > 0 && bit / 8 < 8;
        const std::size_t byte = is_reserved_of_answer ? 8 : bit / 8;
        bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << (bit % 8)));
      }
      return bytes;
    };
    listener.say(changed(0, caller.heard()));
    caller.say(changed(1, listener.heard()));
    listener.say(changed(2, caller.heard()));
    caller.say(changed(3, listener.heard()));
    EXPECT_NE(caller.handshake().state(), State::kDone) << message;
    if (message == 3) continue;  // the listener was content before
    EXPECT_NE(listener.handshake().state(), State::kDone) << message;
  }
}

TEST(HandshakeTest, OneByteAtATime) {
  Side caller(Role::kCaller, kMember);
  Side listener(Role::kListener, kMember);
  for (int round = 0; round < 2; ++round) {
    for (const char c : caller.heard()) listener.say(std::string(1, c));
    for (const char c : listener.heard()) caller.say(std::string(1, c));
  }
  EXPECT_EQ(caller.handshake().state(), State::kDone);
  EXPECT_EQ(listener.handshake().state(), State::kDone);
}

TEST(HandshakeTest, NothingBehindTheHandshakeIsRead) {
  Side caller(Role::kCaller, kMember);
  Side listener(Role::kListener, kMember);
  listener.say(caller.heard());
  caller.say(listener.heard());
  EXPECT_EQ(listener.say(caller.heard() + "next"), State::kDone);
  std::array<char, 16> buffer{};
  EXPECT_EQ(::recv(listener.handshake().fd(), buffer.data(), buffer.size(), MSG_DONTWAIT), 4);
}

TEST(HandshakeTest, StrangersAreToldNothing) {
  for (const std::string_view bytes : {"GET / HTTP/1.1", "\x16\x03\x01", "SSH-2.0-x", "onesun", "\n"}) {
    Side listener(Role::kListener, kMember);
    EXPECT_EQ(listener.say(bytes), State::kBroken);
    EXPECT_EQ(listener.heard(), "");
    EXPECT_EQ(listener.handshake().reason(), "does not speak onesum's protocol");
  }
  Side listener(Role::kListener, kMember);
  EXPECT_EQ(listener.say("onesum"), State::kUnderWay);
  EXPECT_EQ(listener.heard(), "");
  EXPECT_EQ(listener.hang_up(), State::kBroken);
}

TEST(HandshakeTest, WhoHangsUpIsGone) {
  Side silent(Role::kListener, kMember);
  EXPECT_EQ(silent.hang_up(), State::kBroken);
  EXPECT_EQ(silent.handshake().reason(), "closed the connection without a word");
  Side caller(Role::kCaller, kMember);
  EXPECT_EQ(caller.say(recorded(kMember, kMember).of_listener[0]), State::kUnderWay);
  EXPECT_EQ(caller.hang_up(), State::kBroken);
}

}  // namespace
}  // namespace onesum::cluster
