// Messages over sockets arrive whole, with their descriptors, or the error names the other end.
#include "cluster/connection.h"

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/meetings.h"
#include "cluster/reception.h"
#include "cluster/socket.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::expect_error;
using testing::expect_invalid;

class ConnectionTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

struct Pair {
  Connection one;
  Connection two;
};

Pair unix_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {{Fd(ends[0]), "rank 2 (there)"}, {Fd(ends[1]), "rank 1 (here)"}};
}

Pair tcp_pair() {
  const Fd listener = listen_at(*ip_address("127.0.0.1", 0)).socket;
  Fd one = testing::raw_connection(place_of(local_address(listener)));
  std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
  wait_for(polled, now() + 10s);
  return {{std::move(one), "rank 2 (there)"}, {accept_one(listener).socket, "rank 1 (here)"}};
}

TEST_F(ConnectionTest, MessagesArriveInOrder) {
  for (const auto make : {&unix_pair, &tcp_pair}) {
    Pair pair = make();
    EXPECT_FALSE(pair.two.try_receive());
    for (int i = 0; i < 100; ++i) pair.one.queue(static_cast<std::uint16_t>(i), bytes_of(std::to_string(i)));
    EXPECT_TRUE(pair.one.has_unsent());
    EXPECT_TRUE(pair.one.flush());
    for (int i = 0; i < 100; ++i) {
      const Message message = pair.two.receive(now() + 10s);
      EXPECT_EQ(message.kind, i);
      EXPECT_EQ(message.payload, bytes_of(std::to_string(i)));
    }
    EXPECT_FALSE(pair.two.try_receive());
  }
}

TEST_F(ConnectionTest, TheLongestMessageBothWaysAtOnce) {
  const std::vector<std::byte> payload(kMostPayloadBytes, std::byte{7});
  for (const auto make : {&unix_pair, &tcp_pair}) {
    Pair pair = make();
    std::thread other([&] {
      pair.two.queue(1, payload);
      for (bool has_received = false; !has_received || pair.two.has_unsent();) {
        pair.two.flush();
        if (pair.two.try_receive()) has_received = true;
      }
    });
    pair.one.queue(1, payload);
    for (bool has_received = false; !has_received || pair.one.has_unsent();) {
      pair.one.flush();
      if (const auto message = pair.one.try_receive()) {
        EXPECT_TRUE(message->payload == payload);
        has_received = true;
      }
    }
    other.join();
  }
  expect_invalid([&] { unix_pair().one.queue(1, std::vector<std::byte>(kMostPayloadBytes + 1)); },
                 {"a message to rank 2 (there) has 17825793 bytes"});
}

TEST_F(ConnectionTest, DescriptorsTravelWithTheirMessage) {
  Pair pair = unix_pair();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  const Fd writing(ends[1]);
  pair.one.queue(1, bytes_of("none"));
  pair.one.queue(2, bytes_of("one"), std::array{writing.get()});
  pair.one.queue(3, {}, std::array{reading.get(), writing.get()});
  pair.one.queue(4, bytes_of("none"));
  ASSERT_TRUE(pair.one.flush());
  std::vector<Message> messages;
  for (int i = 0; i < 4; ++i) messages.push_back(pair.two.receive(now() + 10s));
  EXPECT_EQ(messages[0].descriptors.size(), 0U);
  ASSERT_EQ(messages[1].descriptors.size(), 1U);
  ASSERT_EQ(messages[2].descriptors.size(), 2U);
  EXPECT_EQ(messages[3].descriptors.size(), 0U);
  EXPECT_EQ(::write(messages[1].descriptors[0].get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(messages[2].descriptors[0].get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
  EXPECT_NE(::fcntl(messages[1].descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ConnectionTest, DescriptorsNeedAUnixSocketAndAMessage) {
  expect_invalid([] { tcp_pair().one.queue(1, {}, std::array{2}); }, {"rank 2 (there)", "Unix socket"});
  expect_invalid([] { unix_pair().one.queue(1, {}, std::vector<int>(17, 2)); }, {"17 descriptors"});
  expect_invalid([] { unix_pair().one.queue(1, {}, std::array{-1}); }, {"descriptor -1 cannot be passed"});
  // Announced and not sent.
  Pair pair = unix_pair();
  testing::write_raw(pair.one.socket(), std::string_view("\0\0\0\0\1\0\1\0", 8));
  expect_error([&] { pair.two.try_receive(); }, ErrorCode::kUnavailable,
               {"rank 1 (here) announced 1 descriptors and sent 0"});
}

TEST_F(ConnectionTest, AClosedConnectionNamesThePeerAfterItsLastMessage) {
  for (const auto make : {&unix_pair, &tcp_pair}) {
    Pair pair = make();
    pair.one.send(5, bytes_of("last"), now() + 10s);
    pair.one.close();
    EXPECT_FALSE(pair.one.is_open());
    EXPECT_EQ(pair.two.receive(now() + 10s).payload, bytes_of("last"));
    expect_error([&] { pair.two.receive(now() + 10s); }, ErrorCode::kUnavailable,
                 {"rank 1 (here) closed the connection"});
    expect_error(
        [&] {
          for (;;) pair.two.send(1, std::vector<std::byte>(1000), now() + 10s);
        },
        ErrorCode::kUnavailable, {"rank 1 (here) closed the connection"});
  }
}

TEST_F(ConnectionTest, HalfAMessageIsNone) {
  Pair pair = unix_pair();
  testing::write_raw(pair.one.socket(), std::string_view("\5\0\0\0\1\0\0\0abc", 11));
  EXPECT_FALSE(pair.two.try_receive());
  expect_error([&] { pair.two.receive(now() + 10ms); }, ErrorCode::kDeadlineExceeded,
               {"rank 1 (here) sent no message in time"});
  pair.one.close();
  expect_error([&] { pair.two.receive(now() + 10s); }, ErrorCode::kUnavailable,
               {"in the middle of a message"});
}

TEST_F(ConnectionTest, AHugeLengthIsRefused) {
  Pair pair = unix_pair();
  testing::write_raw(pair.one.socket(), std::string_view("\xff\xff\xff\x7f\1\0\0\0", 8));
  expect_error([&] { pair.two.receive(now() + 10s); }, ErrorCode::kUnavailable,
               {"rank 1 (here) announced a message of 2147483647 bytes"});
}

TEST_F(ConnectionTest, NobodyReading) {
  Pair pair = unix_pair();
  expect_error([&] { pair.one.send(1, std::vector<std::byte>(kMostPayloadBytes), now() + 20ms); },
               ErrorCode::kDeadlineExceeded, {"rank 2 (there) did not take a message in time"});
}

// Whoever holds on to its place without proving anything loses it.
TEST_F(ConnectionTest, ASilentCallerIsDropped) {
  set_log_level(LogLevel::kError);
  const Passport passport{Secret::from_text(testing::kSecret), "job"};
  Reception reception(passport, "rank 0", 50ms);
  reception.listen(listen_at(*ip_address("127.0.0.1", 0)).socket);
  const MeetingPlace place = place_of(local_address(reception.listeners().front()));
  const Fd silent = testing::raw_connection(place);
  const Fd slow = testing::raw_connection(place);
  testing::write_raw(slow, "onesum");
  std::jthread serving([&](const std::stop_token& stopped) {
    while (!stopped.stop_requested()) {
      std::vector<pollfd> polled;
      reception.add_to(polled);
      wait_for(polled, std::min(now() + 10ms, reception.next_deadline()));
      EXPECT_TRUE(reception.serve().empty());
    }
  });
  EXPECT_EQ(testing::read_all(silent), "");
  EXPECT_EQ(testing::read_all(slow), "");
  Connection proved = testing::shaken_hands(place, passport);  // and then says nothing
  expect_error([&] { proved.receive(now() + 10s); }, ErrorCode::kUnavailable, {"closed the connection"});
  serving.request_stop();
  serving.join();
  set_log_level(LogLevel::kWarning);
}

}  // namespace
}  // namespace onesum::cluster
