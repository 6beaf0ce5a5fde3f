#include "engine/ucx/ucx_transport.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/transport_conformance.h"
#include "engine/transport_pair.h"
#include "engine/ucx_meeting.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::engine::testing {
namespace {

using onesum::testing::expect_error;
using onesum::testing::HangGuard;
using std::chrono::steady_clock;

constexpr Limits kLarge{.bytes = (std::size_t{8} << 20) + kMessageHeader, .messages = 2, .phases = 2};

#define SKIP_WITHOUT_UCX() \
  if (!has_ucx()) GTEST_SKIP() << "this build has no UCX"

TEST(UcxMemory, IsAskedFor) {
  SKIP_WITHOUT_UCX();
  const UcxReport report = report_ucx();
  EXPECT_THAT(report.version, ::testing::StartsWith("1."));
  EXPECT_THAT(report.memory_types, ::testing::Contains("host"));
  const auto transport = make_ucx_transport(loopback(1, {}));
  EXPECT_THAT(transport->memory_types(), ::testing::Contains("host"));
}

TransportUnderTest over_ucx(RanksAre ranks_are, bool checksums) {
  const std::string name = ranks_are == RanksAre::kThreads ? "threads" : "processes";
  return {name + (checksums ? "_checked" : ""), ranks_are, [=](int size, const Limits& limits) {
            if (ranks_are == RanksAre::kProcesses) require_no_ucx_before_fork();
            UcxOptions options = loopback(size, limits);
            options.checksums = checksums;
            return std::make_unique<UcxMeeting>(options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Ucx, TransportConformance,
                         ::testing::Values(over_ucx(RanksAre::kProcesses, true),
                                           over_ucx(RanksAre::kThreads, false)),
                         [](const auto& tested) { return tested.param.name; });

using Pair = std::vector<std::unique_ptr<UcxTransport>>;

// Two ranks in one thread.
Pair make_pair(UcxOptions options) {
  Pair pair;
  std::vector<std::string> addresses;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    pair.push_back(make_ucx_transport(options));
    addresses.push_back(pair.back()->address());
  }
  for (auto& transport : pair) transport->connect(addresses);
  const HangGuard guard{std::chrono::seconds(20)};
  while (pair[0]->unanswered() || pair[1]->unanswered()) {
    for (auto& transport : pair) transport->progress();
  }
  return pair;
}

TEST(UcxTransport, WhatIsNotAsAgreedIsNeverTaken) {
  SKIP_WITHOUT_UCX();
  const std::size_t sizes[] = {1, 300, 5000, 20000, 200000, std::size_t{1} << 20};
  for (const bool checksums : {false, true}) {
    UcxOptions options = loopback(2, kLarge);
    options.checksums = checksums;
    for (const std::size_t bytes : sizes) {
      Pair pair = make_pair(options);
      const Place from = small_place(0, bytes);
      const Place to = small_place(1, bytes);
      const Beat beat{0, 5};
      EXPECT_EQ(exchange(pair, beat, to, beat, from), Arrival::kHere) << bytes;
      pair[0]->finish(beat);
      pair[1]->finish(beat);
      EXPECT_EQ(exchange(pair, {1, 5}, to, {1, 6}, from), Arrival::kMismatch) << bytes;
    }
    for (const auto& [sent, expected] :
         {std::pair{299U, Arrival::kCorrupt}, std::pair{301U, Arrival::kMismatch}}) {
      Pair pair = make_pair(options);
      EXPECT_EQ(exchange(pair, {0, 5}, small_place(1, sent), {0, 5}, small_place(0, 300)), expected) << sent;
    }
  }
}

TEST(UcxTransport, ChecksumsFindAChangedByte) {
  SKIP_WITHOUT_UCX();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20}) {
    for (const bool checksums : {false, true}) {
      UcxOptions options = loopback(2, kLarge);
      options.checksums = checksums;
      Pair pair = make_pair(options);
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

TEST(UcxTransport, EpochsDoNotMix) {
  SKIP_WITHOUT_UCX();
  UcxOptions options = loopback(2, kSmallLimits);
  options.epoch = 3;
  auto old = make_ucx_transport(options);
  options.rank = 1;
  options.epoch = 4;
  auto fresh = make_ucx_transport(options);
  old->connect(std::vector<std::string>{"", fresh->address()});
  fresh->connect(std::vector<std::string>{old->address(), ""});
  const Place from = small_place(0);
  const std::vector<Place> incoming = {from};
  fresh->begin({0, 1}, incoming);
  old->begin({0, 1}, {});
  old->send({0, 1}, small_place(1));
  const auto end = steady_clock::now() + std::chrono::milliseconds(300);
  while (steady_clock::now() < end) {
    old->progress();
    fresh->progress();
    ASSERT_EQ(fresh->arrival({0, 1}, from), Arrival::kNotYet);
  }
  EXPECT_EQ(old->unanswered(), 1);
}

// As it is when a peer dies in a call: receives wait, of which some have found the beginning of their
// message, and sends are under way to someone who does not take them.
TEST(UcxTransport, QuitsInTheMiddleOfEverything) {
  SKIP_WITHOUT_UCX();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{20000}, std::size_t{1} << 20}) {
    for (int turns = 0; turns < 12; ++turns) {
      Pair pair = make_pair(loopback(2, kLarge));
      const Beat beat{0, 1};
      std::deque<std::vector<Place>> incoming;
      for (int rank = 0; rank < 2; ++rank) {
        const Place place = small_place(1 - rank, bytes);
        pair[static_cast<std::size_t>(rank)]->begin(beat, incoming.emplace_back(1, place));
        if (rank == 0 || turns % 2 == 0) pair[static_cast<std::size_t>(rank)]->send(beat, place);
      }
      for (int turn = 0; turn < turns; ++turn) pair[static_cast<std::size_t>(turn % 3 == 0)]->progress();
      for (auto& transport : pair) {
        const auto begin = steady_clock::now();
        EXPECT_TRUE(transport->quit()) << bytes << " bytes, after " << turns;
        EXPECT_TRUE(transport->quit()) << "and says so again";
        EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(2));
      }
    }
  }
}

TEST(UcxTransport, RefusesWhatCannotBe) {
  SKIP_WITHOUT_UCX();
  const auto refused = [](auto change, ErrorCode code, std::initializer_list<std::string_view> words) {
    UcxOptions options = loopback(2, kSmallLimits);
    change(options);
    expect_error([&] { make_ucx_transport(options); }, code, words);
  };
  refused([](auto& o) { o.rank = 2; }, ErrorCode::kInvalidArgument, {"rank 2 of 2"});
  refused([](auto& o) { o.size = 0; }, ErrorCode::kInvalidArgument, {"0 ranks"});
  refused([](auto& o) { o.limits.phases = 0; }, ErrorCode::kInvalidArgument, {"0 copies", "1 to 128"});
  refused([](auto& o) { o.limits.messages = 1U << 30; }, ErrorCode::kInvalidArgument, {"16777216"});
  refused([](auto& o) { o.transports = ""; }, ErrorCode::kInvalidArgument, {"transports"});
  refused([](auto& o) { o.devices = "203.0.113.7"; }, ErrorCode::kInvalidArgument,
          {"203.0.113.7", "no interface of this machine"});
  refused([](auto& o) { o.devices = "nothing0"; }, ErrorCode::kUnavailable, {"nothing0", "ucx_info -d"});
  refused([](auto& o) { o.limits.bytes = ~std::size_t{0} / 2; }, ErrorCode::kResourceExhausted, {"2 ranks"});
  auto transport = make_ucx_transport(loopback(2, kSmallLimits));
  expect_error([&] { transport->connect({}); }, ErrorCode::kInvalidArgument, {"0 addresses for 2 ranks"});
  expect_error([&] { transport->begin({0, 1}, std::vector{small_place(1, 9000)}); }, ErrorCode::kInternal,
               {"9000 bytes at 64"});
}

// Rank 0 is this process; the other is killed where it stands.
void expect_death_to_be_seen(std::size_t bytes, bool dies_sending) {
  require_no_ucx_before_fork();
  UcxMeeting meeting(loopback(2, kLarge));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    const auto transport = meeting.join_ucx(1);
    transport->begin({0, 1}, {});
    if (dies_sending) transport->send({0, 1}, small_place(0, bytes));
    for (;;) pause();
  }
  const HangGuard guard{std::chrono::seconds(60)};  // a thread, which must not be there at the fork
  const auto transport = meeting.join_ucx(0);
  const std::vector<Place> incoming = {small_place(1, bytes)};
  transport->begin({0, 1}, incoming);
  transport->send({0, 1}, small_place(1, bytes));
  EXPECT_EQ(transport->failure(), std::nullopt);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto died = steady_clock::now();
  while (!transport->failure() && steady_clock::now() - died < std::chrono::seconds(20))
    transport->progress();
  std::printf("seen after %.1f ms\n",
              std::chrono::duration<double, std::milli>(steady_clock::now() - died).count());
  ASSERT_TRUE(transport->failure());
  EXPECT_EQ(transport->failure()->rank, 1);
  EXPECT_FALSE(transport->failure()->text.empty());
  if (!dies_sending) {
    EXPECT_EQ(transport->arrival({0, 1}, incoming[0]), Arrival::kNotYet);
  }
  transport->send({0, 1}, {.peer = 1, .number = 1, .offset = 64, .bytes = 8});  // is lost without a word
  EXPECT_TRUE(transport->quit());
  EXPECT_EQ(transport->failure()->rank, 1);
}

TEST(UcxFailure, APeerKilledWhileItWaitsIsNamed) {
  SKIP_WITHOUT_UCX();
  expect_death_to_be_seen(8, false);
}

TEST(UcxFailure, APeerKilledAmidAMessageIsNamed) {
  SKIP_WITHOUT_UCX();
  expect_death_to_be_seen(std::size_t{8} << 20, true);
}

}  // namespace
}  // namespace onesum::engine::testing
