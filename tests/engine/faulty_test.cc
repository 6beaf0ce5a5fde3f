#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/faulty/faulty_transport.h"
#include "engine/transport_conformance.h"
#include "engine/ucx_meeting.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::engine::testing {
namespace {

using onesum::testing::expect_invalid;
using ::testing::ElementsAre;

TEST(FaultText, EveryFieldIsRead) {
  const auto faults =
      parse_faults(" rank = 1,epoch=2, beat=3,op=5,do=delay,ms=70 ; do=die;;op=1,do=exit,status=9; ");
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0], (Fault{1, 2, 3, 5, FaultAction::kDelay, 70}));
  EXPECT_EQ(faults[1], Fault{});
  EXPECT_EQ(faults[2], (Fault{std::nullopt, 0, 0, 1, FaultAction::kExit, 0, 9}));
  EXPECT_TRUE(parse_faults("").empty());
  EXPECT_TRUE(parse_faults(" ; ").empty());
  for (const std::string_view action : {"drop", "truncate", "corrupt", "die", "stop", "exit", "delay,ms=1"}) {
    const Fault fault = parse_faults("rank=4,beat=18446744073709551615,do=" + std::string(action)).at(0);
    EXPECT_EQ(parse_faults(to_string(fault)).at(0), fault) << to_string(fault);
  }
}

TEST(FaultText, ErrorsNameThePart) {
  expect_invalid([] { parse_faults("rank=1;do=die"); }, {"fault \"rank=1\"", "do= is missing", "truncate"});
  expect_invalid([] { parse_faults("do=did"); }, {"unknown action \"did\"", "did you mean die?"});
  expect_invalid([] { parse_faults("do=die,ranks=1"); }, {"unknown field \"ranks=1\"", "did you mean rank?"});
  expect_invalid([] { parse_faults("do=die,"); },
                 {"unknown field \"\"", "rank, epoch, beat, op, do, ms or status"});
  expect_invalid([] { parse_faults("do=die,op=-1"); }, {"op is \"-1\"", "a number from 0"});
  expect_invalid([] { parse_faults("do=die,op"); }, {"op is \"\""});
  expect_invalid([] { parse_faults("do=die,rank=2147483648"); }, {"rank is \"2147483648\"", "to 2147483647"});
  expect_invalid([] { parse_faults("do=exit,status=256"); }, {"from 0 to 255"});
  expect_invalid([] { parse_faults("do=die,do=stop"); }, {"do is given twice"});
  expect_invalid([] { parse_faults("do=delay"); }, {"do=delay needs ms="});
  expect_invalid([] { parse_faults("do=die,ms=4"); }, {"ms= belongs to do=delay"});
  expect_invalid([] { parse_faults("do=die,status=4"); }, {"status= belongs to do=exit"});
}

// Carries nothing and writes down what it was asked.
class Recorder final : public Transport {
 public:
  explicit Recorder(std::vector<std::string>& log) : log_(log) {}
  const Limits& limits() const noexcept override { return limits_; }
  std::byte* outbox(Box, int, unsigned phase) noexcept override { return boxes_.at(phase).data(); }
  const std::byte* inbox(Box, int, unsigned phase) noexcept override { return boxes_.at(phase).data(); }
  void begin(const Beat& beat, std::span<const Place>) override {
    log("begin " + std::to_string(beat.number));
  }
  bool may_send(const Beat&, int) noexcept override { return true; }
  void send(const Beat& beat, const Place& place) override {
    const std::byte* payload = boxes_.at(beat.number % 2).data() + place.offset;
    std::string text(reinterpret_cast<const char*>(payload), place.bytes);
    log("send " + std::to_string(place.number) + " " + text);
  }
  Arrival arrival(const Beat&, const Place&) override { return Arrival::kHere; }
  void finish(const Beat&) override { log("finish"); }
  bool is_flushed() noexcept override { return true; }
  bool progress() override { return true; }
  bool arm() override { return true; }
  void disarm() noexcept override {}
  int event_fd() const noexcept override { return -1; }
  bool quit() noexcept override { return true; }

 private:
  void log(std::string line) { log_.push_back(std::move(line)); }
  Limits limits_{.bytes = 1024, .messages = 4, .phases = 2};
  std::array<std::array<std::byte, 1024>, 2> boxes_{};
  std::vector<std::string>& log_;
};

// A beat of two messages out and one in: operations begin 0, send 1, send 2, arrival 3, finish 4.
void play(Transport& transport, std::uint64_t number, bool first_is_empty = false) {
  const Beat beat{number, 1};
  const std::vector<Place> incoming = {small_place(1)};
  transport.begin(beat, incoming);
  for (std::uint32_t message = 0; message < 2; ++message) {
    const std::size_t bytes = message == 0 && first_is_empty ? 0 : 4;
    const Place place{1, message, 64 + 128 * std::size_t{message}, bytes};
    std::memcpy(transport.outbox(Box::kPair, 1, static_cast<unsigned>(number % 2)) + place.offset, "abcd",
                bytes);
    transport.send(beat, place);
  }
  for (int asked = 0; asked < 3; ++asked) EXPECT_EQ(transport.arrival(beat, incoming[0]), Arrival::kHere);
  transport.finish(beat);
}

std::vector<std::string> log_of(const std::string& faults, std::uint64_t beats, FaultyOptions options = {},
                                bool first_is_empty = false) {
  std::vector<std::string> log;
  options.faults = parse_faults(faults);
  FaultyTransport transport(std::make_unique<Recorder>(log), std::move(options));
  for (std::uint64_t beat = 0; beat < beats; ++beat) play(transport, beat, first_is_empty);
  EXPECT_EQ(transport.operations(), 5 * beats);
  EXPECT_EQ(transport.operations_in_beat(), 5U);
  return log;
}

TEST(Faulty, MessagesAreDroppedTruncatedAndCorrupted) {
  EXPECT_THAT(log_of("", 1), ElementsAre("begin 0", "send 0 abcd", "send 1 abcd", "finish"));
  EXPECT_THAT(log_of("beat=1,op=1,do=drop", 2), ElementsAre("begin 0", "send 0 abcd", "send 1 abcd", "finish",
                                                            "begin 1", "send 1 abcd", "finish"));
  EXPECT_THAT(log_of("op=2,do=truncate", 1), ElementsAre("begin 0", "send 0 abcd", "send 1 ab", "finish"));
  EXPECT_THAT(log_of("do=corrupt", 1), ElementsAre("begin 0", "send 0 absd", "send 1 abcd", "finish"))
      << "the first one sent from operation 0 on";
  EXPECT_THAT(log_of("do=truncate", 1, {}, true), ElementsAre("begin 0", "send 0 ", "send 1 ab", "finish"))
      << "one with a payload";
  EXPECT_THAT(log_of("op=3,do=drop", 2).size(), 8U) << "none is sent in that beat any more";
  EXPECT_THAT(log_of("rank=1,do=drop;epoch=1,do=drop", 1).size(), 4U) << "another rank, another epoch";
  EXPECT_THAT(
      log_of("rank=3,epoch=1,do=drop", 1, {.rank = 3, .epoch = 1, .faults = {}, .damage_next = {}}).size(),
      3U);
}

TEST(Faulty, CorruptionIsLeftToATransportThatCanDoItBelowItsChecksum) {
  std::vector<int> asked;
  const auto damage = [&](int peer) {
    asked.push_back(peer);
    return true;
  };
  EXPECT_THAT(log_of("do=corrupt", 1, {.rank = 0, .epoch = 0, .faults = {}, .damage_next = damage}),
              ElementsAre("begin 0", "send 0 abcd", "send 1 abcd", "finish"));
  EXPECT_THAT(asked, ElementsAre(1));
}

TEST(Faulty, Delays) {
  const auto begin = std::chrono::steady_clock::now();
  log_of("beat=1,op=3,do=delay,ms=60", 3);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(60));
}

// The wait status of a process that plays two beats, and how many lines of the log it left.
std::pair<int, int> fate(const std::string& faults) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> log;
    FaultyTransport transport(std::make_unique<Recorder>(log), {0, 0, parse_faults(faults), {}});
    const auto tell = [&] {
      const auto lines = static_cast<char>(log.size());
      if (write(pipe_ends[1], &lines, 1) != 1) _exit(99);
    };
    const Beat beat{0, 1};
    transport.begin(beat, {});
    tell();
    transport.send(beat, {1, 0, 64, 4});
    tell();
    transport.finish(beat);
    tell();
    _exit(0);
  }
  close(pipe_ends[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
  if (WIFSTOPPED(status)) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  char lines = 0;
  while (read(pipe_ends[0], &lines, 1) == 1) continue;
  close(pipe_ends[0]);
  return {status, lines};
}

TEST(Faulty, ProcessesDieStopAndExitBeforeTheOperation) {
  EXPECT_EQ(fate(""), std::pair(0, 3));
  EXPECT_EQ(fate("op=0,do=die"), std::pair(SIGKILL, 0));
  EXPECT_EQ(fate("op=1,do=die"), std::pair(SIGKILL, 1));
  EXPECT_EQ(fate("op=2,do=exit,status=7"), std::pair(7 << 8, 2));
  EXPECT_EQ(fate("op=2,do=stop"), std::pair((SIGSTOP << 8) | 0x7f, 2));
}

class FaultyMeeting final : public Meeting {
 public:
  FaultyMeeting(UcxOptions options, std::string faults)
      : ucx_(std::move(options)), faults_(std::move(faults)) {}
  std::unique_ptr<Transport> join(int rank) override {
    auto ucx = ucx_.join_ucx(rank);
    UcxTransport& inner = *ucx;
    return std::make_unique<FaultyTransport>(
        std::move(ucx), FaultyOptions{rank, 0, parse_faults(faults_),
                                      [&inner](int peer) { return inner.damage_next(peer); }});
  }

 private:
  UcxMeeting ucx_;
  std::string faults_;
};

// What becomes of rank 1's third message, at rank 0, over the network with checksums.
Arrival third_arrival(const std::string& action) {
  UcxOptions options = loopback(2, kSmallLimits);
  options.checksums = true;
  const TransportUnderTest tested{"faulty", RanksAre::kThreads, [&](int, const Limits&) {
                                    return std::make_unique<FaultyMeeting>(options,
                                                                           "rank=1,beat=2,do=" + action);
                                  }};
  Arrival last = Arrival::kNotYet;
  const auto failures = run_ranks(tested, 2, kSmallLimits, [&](Rank& self) {
    Transport& transport = self.transport();
    const std::vector<Place> places = {small_place(1 - self.number(), 500)};
    for (std::uint64_t number = 0; number < 3; ++number) {
      const Beat beat{number, 1};
      transport.begin(beat, places);
      self.await([&] { return transport.may_send(beat, places[0].peer); }, Waiting::kEither, "leave");
      transport.send(beat, places[0]);
      const bool is_hit = number == 2 && self.number() == 0;
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      Arrival arrival = Arrival::kNotYet;
      const auto is_over = [&] {
        arrival = transport.arrival(beat, places[0]);
        return arrival != Arrival::kNotYet || (is_hit && std::chrono::steady_clock::now() > until);
      };
      self.await(is_over, Waiting::kSpin, "a message");
      if (is_hit) last = arrival;
      if (arrival == Arrival::kHere) transport.finish(beat);
    }
    self.meet();
    self.require(self.quit(), "cannot quit");
  });
  EXPECT_EQ(failures, "");
  return last;
}

TEST(Faulty, WhatHappensToAMessageIsSeenByItsReceiver) {
  if (!has_ucx()) GTEST_SKIP() << "this build has no UCX";
  EXPECT_EQ(third_arrival("delay,ms=20"), Arrival::kHere);
  EXPECT_EQ(third_arrival("drop"), Arrival::kNotYet);
  EXPECT_EQ(third_arrival("truncate"), Arrival::kCorrupt);
  EXPECT_EQ(third_arrival("corrupt"), Arrival::kCorrupt);
}

}  // namespace
}  // namespace onesum::engine::testing
