#include "engine/tcp/tcp_transport.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/checksum.h"
#include "engine/native.h"
#include "engine/tcp_meeting.h"
#include "engine/transport_conformance.h"
#include "engine/transport_pair.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::engine::testing {
namespace {

using onesum::testing::expect_error;
using onesum::testing::HangGuard;
using std::chrono::steady_clock;
using tcp::TcpOptions;
using tcp::TcpTransport;

constexpr Limits kLarge{.bytes = (std::size_t{8} << 20) + kMessageHeader, .messages = 2, .phases = 2};

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance,
                         ::testing::Values(over_tcp(RanksAre::kProcesses, has_checksums()),
                                           over_tcp(RanksAre::kThreads, false)),
                         [](const auto& tested) { return tested.param.name; });

using Pair = std::vector<std::unique_ptr<TcpTransport>>;

// Two ranks in one thread.
Pair make_pair(const Limits& limits, bool checksums = false) {
  TcpMeeting meeting({.size = 2, .limits = limits, .checksums = checksums});
  Pair pair;
  for (int rank = 0; rank < 2; ++rank) pair.push_back(meeting.join_tcp(rank));
  return pair;
}

// One with a socket of the test's at the other end, which may say anything.
struct Alone {
  explicit Alone(bool checksums = false, const Limits& limits = kSmallLimits) {
    auto [ours, its] = connected_sockets();
    socket = std::move(ours);
    std::vector<Fd> sockets(2);
    sockets[1] = std::move(its);
    transport = std::make_unique<TcpTransport>(
        TcpOptions{.size = 2, .limits = limits, .checksums = checksums}, std::move(sockets));
  }
  void say(const void* bytes, std::size_t count) const {
    ASSERT_EQ(::send(socket.get(), bytes, count, MSG_NOSIGNAL), static_cast<ssize_t>(count));
  }
  void say(const tcp::Header& header) const { say(&header, sizeof header); }
  Arrival await(const Beat& beat, const Place& place) const {
    const HangGuard guard{std::chrono::seconds(20)};
    Arrival arrival = Arrival::kNotYet;
    while ((arrival = transport->arrival(beat, place)) == Arrival::kNotYet) transport->progress();
    return arrival;
  }

  Fd socket;
  std::unique_ptr<TcpTransport> transport;
};

tcp::Header header_of(const Beat& beat, const Place& place) {
  tcp::Header header;
  header.beat = beat.number;
  header.token = beat.token;
  header.bytes = place.bytes;
  header.offset = place.offset;
  header.number = place.number;
  return header;
}

TEST(TcpTransport, WhatIsNotAsAgreedIsNeverTaken) {
  for (const std::size_t bytes : {1U, 300U, 5000U, 20000U, 200000U, 1U << 20}) {
    Pair pair = make_pair(kLarge);
    const Place from = small_place(0, bytes);
    const Place to = small_place(1, bytes);
    EXPECT_EQ(exchange(pair, {0, 5}, to, {0, 5}, from), Arrival::kHere) << bytes;
    for (auto& transport : pair) transport->finish({0, 5});
    EXPECT_EQ(exchange(pair, {1, 5}, to, {1, 6}, from), Arrival::kMismatch) << bytes;
  }
  for (const std::size_t sent : {299U, 301U}) {
    Pair pair = make_pair(kLarge);
    EXPECT_EQ(exchange(pair, {0, 5}, small_place(1, sent), {0, 5}, small_place(0, 300)), Arrival::kCorrupt);
  }
}

// Who is in another call may never send the message that is waited for.
TEST(TcpTransport, AnyMessageOfAnotherCallIsFound) {
  Pair pair = make_pair(kLarge);
  Place sent = small_place(1, 300);
  sent.number = 1;
  EXPECT_EQ(exchange(pair, {0, 5}, sent, {0, 6}, small_place(0, 8)), Arrival::kMismatch);
}

TEST(TcpTransport, ChecksumsFindAChangedByte) {
  if (!has_checksums()) GTEST_SKIP() << "this build has no ISA-L";
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20}) {
    for (const bool checksums : {false, true}) {
      Pair pair = make_pair(kLarge, checksums);
      EXPECT_TRUE(pair[0]->damage_next(1));
      EXPECT_FALSE(pair[0]->damage_next(0));
      const Place from = small_place(0, bytes);
      const Arrival arrival = exchange(pair, {0, 1}, small_place(1, bytes), {0, 1}, from);
      EXPECT_EQ(arrival, checksums ? Arrival::kCorrupt : Arrival::kHere) << bytes;
      EXPECT_EQ(pair[1]->inbox(Box::kPair, 0, 0)[from.offset + bytes / 2], std::byte{7 ^ 0x10})
          << "the drill changed nothing";
    }
  }
}

struct Lends {
  bool sends, receives, early;  // the message comes before it has a place
};

// Payloads of several stretches, which divide it differently at both ends.
void expect_lent(Pair& pair, std::uint64_t number, std::size_t bytes, const Lends& lends) {
  const HangGuard guard{std::chrono::seconds(20)};
  const Beat beat{number, 5};
  std::vector<std::byte> from(bytes);
  for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + number);
  std::vector<std::byte> to(bytes + 2, std::byte{0xEE});
  const auto cut = [](std::span<std::byte> memory, std::size_t at) {
    return std::vector<Stretch>{memory.first(at), memory.subspan(at, 0), memory.subspan(at)};
  };
  Place sent = small_place(1, bytes);
  Place received = small_place(0, bytes);
  sent.is_lent = lends.sends;
  received.is_lent = lends.receives;
  const std::vector<Place> incoming = {received};
  pair[0]->begin(beat, {});
  pair[1]->begin(beat, incoming);
  const auto progress = [&] {
    for (auto& transport : pair) transport->progress();
  };
  const auto receive = [&] {
    pair[1]->receive_into(beat, received, cut(std::span(to).subspan(1, bytes), bytes / 5));
  };
  if (lends.receives && !lends.early) receive();
  while (!pair[0]->may_send(beat, 1)) progress();
  if (lends.sends) {
    pair[0]->send_from(beat, sent, cut(from, bytes / 3));
  } else {
    std::ranges::copy(from, pair[0]->outbox(Box::kPair, 1, number % 2) + sent.offset);
    pair[0]->send(beat, sent);
  }
  if (lends.receives && lends.early) {
    const auto until = steady_clock::now() + std::chrono::milliseconds(20);
    while (steady_clock::now() < until) progress();
    receive();
  }
  Arrival arrival = Arrival::kNotYet;
  while ((arrival = pair[1]->arrival(beat, received)) == Arrival::kNotYet) progress();
  ASSERT_EQ(arrival, Arrival::kHere);
  while (!pair[0]->is_taken(beat)) progress();
  std::ranges::fill(from, std::byte{0});
  if (lends.receives) {
    EXPECT_EQ(to.front(), std::byte{0xEE});
    EXPECT_EQ(to.back(), std::byte{0xEE});
  }
  const std::byte* found =
      lends.receives ? to.data() + 1 : pair[1]->inbox(Box::kPair, 0, number % 2) + received.offset;
  for (std::size_t i = 0; i < bytes; ++i) {
    ASSERT_EQ(found[i], static_cast<std::byte>(i * 7 + number)) << i << " of " << bytes;
  }
  for (auto& transport : pair) transport->finish(beat);
}

TEST(TcpTransport, MessagesLieWhereverTheyLie) {
  for (const bool checksums : {false, has_checksums()}) {
    Pair pair = make_pair(kLarge, checksums);
    std::uint64_t beat = 0;
    for (const std::size_t bytes : {1U, 17U, 8128U, 8129U, 70000U, 3U << 20}) {
      for (const Lends lends : {Lends{true, true, false}, Lends{true, true, true}, Lends{true, false, false},
                                Lends{false, true, false}, Lends{false, true, true}}) {
        expect_lent(pair, beat++, bytes, lends);
      }
    }
  }
}

// In the middle of everything, also of a message: at once, and nothing is written from then on.
TEST(TcpTransport, QuitsInTheMiddleOfEverything) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{20000}, std::size_t{8} << 20}) {
    for (int turns = 0; turns < 12; ++turns) {
      Pair pair = make_pair(kLarge);
      const Beat beat{0, 1};
      const std::vector<Place> places[2] = {{small_place(1, bytes)}, {small_place(0, bytes)}};
      for (std::size_t rank = 0; rank < 2; ++rank) {
        pair[rank]->begin(beat, places[rank]);
        if (rank == 0 || turns % 2 == 0) pair[rank]->send(beat, places[rank][0]);
      }
      for (int turn = 0; turn < turns; ++turn) pair[turn % 3 == 0 ? 1 : 0]->progress();
      for (auto& transport : pair) {
        const auto begin = steady_clock::now();
        EXPECT_TRUE(transport->quit()) << bytes << " bytes, after " << turns;
        EXPECT_TRUE(transport->quit()) << "and says so again";
        EXPECT_LT(steady_clock::now() - begin, std::chrono::milliseconds(100));
      }
    }
  }
}

// What a rank has sent is there, though it has left, and has not read what was sent to it.
TEST(TcpTransport, WhoLeavesTakesNothingBack) {
  const std::size_t bytes = std::size_t{4} << 20;
  Pair pair = make_pair(kLarge);
  const Beat beat{0, 1};
  const std::vector<Place> incoming = {small_place(0, bytes)};
  pair[0]->begin(beat, {});
  pair[1]->begin(beat, incoming);
  write(*pair[0], beat, small_place(1, bytes), 7);
  pair[0]->send(beat, small_place(1, bytes));
  const HangGuard guard{std::chrono::seconds(20)};
  while (!pair[0]->is_flushed()) {
    for (auto& transport : pair) transport->progress();
  }
  pair[1]->send(beat, small_place(0, 100));  // of another call, perhaps: nobody reads it
  pair[0]->finish(beat);
  std::thread leaves([&] { pair[0]->quit(); });
  while (pair[1]->arrival(beat, incoming[0]) == Arrival::kNotYet) pair[1]->progress();
  leaves.join();
  EXPECT_EQ(pair[1]->arrival(beat, incoming[0]), Arrival::kHere);
  EXPECT_EQ(pair[1]->inbox(Box::kPair, 0, 0)[incoming[0].offset + bytes - 1], std::byte{7});
}

TEST(TcpTransport, NonsenseIsFoundAndReadNoFurther) {
  const Beat beat{0, 5};
  const Place place = small_place(1, 100);
  const auto tries = [&](auto change) {
    Alone alone;
    const std::vector<Place> incoming = {place};
    alone.transport->begin(beat, incoming);
    tcp::Header header = header_of(beat, place);
    change(header);
    alone.say(header);
    alone.say(std::vector<std::byte>(1000).data(), 1000);
    return alone.await(beat, place);
  };
  EXPECT_EQ(tries([](auto&) {}), Arrival::kHere);
  EXPECT_EQ(tries([](auto& h) { h.mark = 0; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.kind = static_cast<tcp::Kind>(7); }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.bytes = 1 << 20; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.bytes = ~std::uint64_t{0}; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.offset = 8; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.offset = ~std::uint64_t{0} - 50; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.number = kSmallLimits.messages; }), Arrival::kCorrupt);
  EXPECT_EQ(tries([](auto& h) { h.kind = tcp::Kind::kNews; }), Arrival::kCorrupt);  // which has no payload
}

// Also what says nothing but how far a rank has got is not believed if it was changed.
TEST(TcpTransport, ChecksumsFindAChangedHeader) {
  if (!has_checksums()) GTEST_SKIP() << "this build has no ISA-L";
  const Beat beat{0, 5};
  const Place place = small_place(1, 100);
  for (const tcp::Kind kind : {tcp::Kind::kMessage, tcp::Kind::kNews}) {
    Alone alone(true);
    const std::vector<Place> incoming = {place};
    alone.transport->begin(beat, incoming);
    tcp::Header header = header_of(beat, place);
    header.kind = kind;
    if (kind == tcp::Kind::kNews) header.bytes = 0;
    header.checksum = 1;
    alone.say(header);
    EXPECT_EQ(alone.await(beat, place), Arrival::kCorrupt);
  }
}

// Whoever has sent in a beat that comes after it sends nothing in this one any more.
TEST(TcpTransport, WhoIsFarAheadIsInAnotherCall) {
  Alone alone;
  const Place place = small_place(1, 100);
  const std::vector<Place> incoming = {place};
  alone.transport->begin({0, 5}, incoming);
  alone.say(header_of({kSmallLimits.phases, 5}, place));
  alone.say(std::vector<std::byte>(100).data(), 100);
  EXPECT_EQ(alone.await({0, 5}, place), Arrival::kMismatch);
}

// A beat that is over: its message writes nothing, and what comes after it is understood.
TEST(TcpTransport, WhatComesTooLateIsThrownAway) {
  Alone alone;
  const Place place = small_place(1, 100);
  alone.transport->begin({0, 5}, {});
  alone.transport->finish({0, 5});
  const std::vector<Place> incoming = {place};
  alone.transport->begin({1, 5}, incoming);
  alone.say(header_of({0, 6}, place));
  alone.say(std::vector<std::byte>(100, std::byte{1}).data(), 100);
  alone.say(header_of({1, 5}, place));
  alone.say(std::vector<std::byte>(100, std::byte{2}).data(), 100);
  EXPECT_EQ(alone.await({1, 5}, place), Arrival::kHere);
  EXPECT_EQ(alone.transport->inbox(Box::kPair, 1, 1)[place.offset], std::byte{2});
  EXPECT_EQ(alone.transport->inbox(Box::kPair, 1, 0)[place.offset], std::byte{0});
}

// Somebody else knows that it is gone, mostly; if nobody does, who waits must hear of it in the end.
TEST(TcpTransport, AnEndIsToldToWhoWaitsForLong) {
  Alone alone;
  const Place place = small_place(1, 100);
  const std::vector<Place> incoming = {place};
  alone.transport->begin({0, 5}, {});
  alone.socket.reset();
  EXPECT_FALSE(alone.transport->arm());  // sees it
  alone.transport->disarm();
  alone.transport->finish({0, 5});
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  alone.transport->begin({1, 5}, incoming);  // and waits from now on
  const auto begin = steady_clock::now();
  const auto wait = [&] {
    while (steady_clock::now() - begin < std::chrono::seconds(20)) {
      alone.transport->progress();
      EXPECT_EQ(alone.transport->arrival({1, 5}, place), Arrival::kNotYet);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  expect_error(wait, ErrorCode::kUnavailable, {"rank 1", "the other end closed it", "cut connections"});
  EXPECT_GT(steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_THROW(alone.transport->progress(), PeerLost);
  alone.transport->send({0, 5}, small_place(1, 100));  // is lost without a word
  EXPECT_TRUE(alone.transport->quit());
}

TEST(TcpTransport, RefusesWhatCannotBe) {
  const auto refused = [](const TcpOptions& options, std::size_t sockets, ErrorCode code,
                          std::initializer_list<std::string_view> words) {
    expect_error([&] { TcpTransport(options, std::vector<Fd>(sockets)); }, code, words);
  };
  const Limits good = kSmallLimits;
  refused({.rank = 2, .size = 2, .limits = good}, 2, ErrorCode::kInvalidArgument, {"rank 2 of 2"});
  refused({.size = 2, .limits = good}, 3, ErrorCode::kInvalidArgument, {"3 sockets for 2 ranks"});
  refused({.size = 2, .limits = {.bytes = 8192, .messages = 1, .phases = 0}}, 2, ErrorCode::kInvalidArgument,
          {"0 copies"});
  refused({.size = 2, .limits = {.bytes = ~std::size_t{0} / 2, .messages = 1, .phases = 2}}, 2,
          ErrorCode::kResourceExhausted, {"2 ranks"});
  TcpTransport transport({.size = 2, .limits = good}, std::vector<Fd>(2));
  expect_error([&] { transport.begin({0, 1}, std::vector{small_place(1, 9000)}); }, ErrorCode::kInternal,
               {"9000 bytes at 64"});
  const Place place = small_place(1, 8);
  expect_error([&] { transport.send_from({0, 1}, place, {}); }, ErrorCode::kInternal, {"0 bytes lent", "8"});
}

}  // namespace
}  // namespace onesum::engine::testing
