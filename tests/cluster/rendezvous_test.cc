// Workers meet, or all say why not. Here they are threads; processes are in rendezvous_process_test.cc.
#include "cluster/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include <onesum/version.h>

#include "base/log.h"
#include "cluster/meetings.h"
#include "cluster/messages.h"
#include "cluster/socket.h"
#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;
using namespace onesum::testing;

class RendezvousTest : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }  // strangers are warned of
  void TearDown() override { set_log_level(LogLevel::kWarning); }

 private:
  HangGuard hang_guard_;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

// Each is started after the one before it has had time to come.
Workers started(Job& job, const std::vector<int>& order, std::chrono::milliseconds pause = 0ms) {
  Workers workers(static_cast<std::size_t>(job.size()));
  for (const int rank : order) {
    workers[rank] = std::make_unique<Worker>(job.meeting(rank));
    std::this_thread::sleep_for(pause);
  }
  return workers;
}

std::vector<int> ascending(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<Outcome*> outcomes_of(Workers& workers) {
  std::vector<Outcome*> outcomes;
  for (auto& worker : workers) outcomes.push_back(&worker->outcome());
  return outcomes;
}

TEST_F(RendezvousTest, AllMeet) {
  for (const Over over : kAllKinds) {
    if (!is_possible(over)) {
      std::printf("SKIPPED: %s\n", std::string(testing::to_string(over)).c_str());
      continue;
    }
    for (const int size : {1, 2, 3, 5, 8, 17}) {
      for (const bool has_secret : {false, true}) {
        SCOPED_TRACE(std::string(testing::to_string(over)) + ", " + std::to_string(size) + " workers");
        Job job(over, size);
        if (has_secret) job.secret = Secret::from_text(kSecret);
        Workers workers = started(job, ascending(size));
        expect_met(outcomes_of(workers));
        for (auto& worker : workers) {
          for (const Connection& connection : worker->outcome().met->connections) {
            const bool is_local = over == Over::kUnix || over == Over::kTcpAndUnix;
            if (!connection.is_open()) continue;
            EXPECT_EQ(connection.is_unix(), is_local);
          }
        }
      }
    }
  }
}

TEST_F(RendezvousTest, WhateverTheOrderInWhichTheyCome) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    std::vector<int> order = ascending(4);
    do {
      Job job(over, 4);
      Workers workers = started(job, order, 2ms);
      expect_met(outcomes_of(workers));
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_F(RendezvousTest, ALateOneIsAwaited) {
  for (const int late : {0, 2}) {
    Job job(Over::kUnix, 3);
    std::vector<int> order = ascending(3);
    std::erase(order, late);
    Workers workers = started(job, order);
    std::this_thread::sleep_for(300ms);
    workers[late] = std::make_unique<Worker>(job.meeting(late));
    expect_met(outcomes_of(workers));
  }
}

TEST_F(RendezvousTest, LargeOffersArrive) {
  Job job(Over::kTcp, 3);
  Workers workers;
  for (int rank = 0; rank < 3; ++rank) {
    Meeting meeting = job.meeting(rank);
    meeting.offer.assign(kMostOfferBytes, static_cast<std::byte>(rank + 1));
    workers.push_back(std::make_unique<Worker>(std::move(meeting)));
  }
  for (auto& worker : workers) {
    ASSERT_TRUE(worker->outcome().met) << worker->outcome().text;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const auto& offer = worker->outcome().met->offers[rank];
      EXPECT_EQ(offer, std::vector(kMostOfferBytes, static_cast<std::byte>(rank + 1)));
    }
  }
}

TEST_F(RendezvousTest, WhoIsMissingIsListedEverywhere) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    Job job(over, 4, 400ms);
    Workers workers = started(job, {0, 2});
    for (const int rank : {0, 2}) {
      expect_failed(workers[rank]->outcome(), ErrorCode::kDeadlineExceeded,
                    {"2 of 4 workers came within", " s; missing: 1, 3"});
    }
    EXPECT_EQ(workers[0]->outcome().text, workers[2]->outcome().text);
  }
}

TEST_F(RendezvousTest, TheEarliestDeadlineEndsTheMeetingForAll) {
  Job job(Over::kUnix, 3, 60s);
  Worker leader(job.meeting(0));
  Meeting impatient = job.meeting(1);
  impatient.deadline = now() + 200ms;
  Worker member(std::move(impatient));
  expect_failed(leader.outcome(), ErrorCode::kDeadlineExceeded, {"2 of 3 workers", "missing: 2"});
  EXPECT_EQ(leader.outcome().text, member.outcome().text);
}

TEST_F(RendezvousTest, WithoutWorkerZeroTheOthersSayWhereTheyLooked) {
  Job job(Over::kUnix, 2, 200ms);
  const Outcome outcome = outcome_of(job.meeting(1));
  expect_failed(outcome, ErrorCode::kDeadlineExceeded,
                {"rank 1 did not find worker 0 within 0.2 s", "unix:onesum/", "Connection refused"});
  Meeting elsewhere = job.meeting(1);
  elsewhere.place = {.host = "no-such-host.invalid", .port = 1};
  elsewhere.secret = Secret::from_text(kSecret);
  expect_failed(outcome_of(std::move(elsewhere)), ErrorCode::kDeadlineExceeded,
                {"host \"no-such-host.invalid\""});
}

// One of three differs: all get the same error, whoever comes last.
void expect_refused(const std::function<void(Meeting&)>& change,
                    std::initializer_list<std::string_view> parts) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    for (const std::vector<int>& order : {std::vector{0, 1, 2}, {0, 2, 1}, {2, 1, 0}}) {
      Job job(over, 3);
      Workers workers(3);
      for (const int rank : order) {
        Meeting meeting = job.meeting(rank);
        if (rank == 2) change(meeting);
        workers[rank] = std::make_unique<Worker>(std::move(meeting));
        std::this_thread::sleep_for(5ms);
      }
      for (auto& worker : workers) {
        expect_failed(worker->outcome(), ErrorCode::kInvalidArgument, parts);
        EXPECT_EQ(worker->outcome().text, workers[0]->outcome().text);
      }
    }
  }
}

TEST_F(RendezvousTest, DifferencesAreNamed) {
  expect_refused([](Meeting& meeting) { meeting.settings[0].value = "shm"; },
                 {"rank 2 has ONESUM_TRANSPORT=shm, rank 0 has auto"});
  expect_refused([](Meeting& meeting) { meeting.settings.pop_back(); },
                 {"rank 2 has no setting ONESUM_OTHER, rank 0 has ONESUM_OTHER=1"});
  expect_refused([](Meeting& meeting) { meeting.settings.push_back({"ONESUM_MORE", "a, b"}); },
                 {"rank 2 has ONESUM_MORE=\"a, b\", rank 0 has no such setting"});
  expect_refused([](Meeting& meeting) { meeting.version = "9.9.9"; },
                 {"rank 2 runs onesum 9.9.9, rank 0 runs onesum 0."});
  expect_refused([](Meeting& meeting) { meeting.size = 4; },
                 {"rank 2 was started as one of 4 workers, rank 0 as one of 3"});
  expect_refused([](Meeting& meeting) { meeting.rank = 1; }, {"two workers have rank 1: "});
  expect_refused([](Meeting& meeting) { meeting.job = "another"; },
                 {"rank 2 belongs to job \"another\", rank 0 to job \"test-"});
}

TEST_F(RendezvousTest, AnotherProtocolIsNamed) {
  Job job(Over::kUnix, 2);
  Worker leader(job.meeting(0));
  const Passport passport{std::nullopt, job.meeting(1).job};
  Connection connection = shaken_hands(job.place(), passport);
  Hello hello;
  hello.protocol = 7;
  hello.version = "0.9.0";
  hello.rank = 1;
  connection.send(number_of(Kind::kHello), encode(hello), now() + 10s);
  const Refusal refusal = decode_refusal(connection.receive(now() + 10s).payload);
  connection.close();
  EXPECT_EQ(refusal.text, leader.outcome().text);
  expect_failed(leader.outcome(), ErrorCode::kInvalidArgument,
                {"rank 1 runs onesum 0.9.0, rank 0 runs onesum"});
}

TEST_F(RendezvousTest, WrongArguments) {
  Job job(Over::kUnix, 2);
  const auto with = [&](const std::function<void(Meeting&)>& change) {
    return [&job, change] {
      Meeting meeting = job.meeting(0);
      change(meeting);
      meet(std::move(meeting));
    };
  };
  expect_invalid(with([](Meeting& m) { m.size = 0; }), {"a job of 0 workers, expected 1 to 4096"});
  expect_invalid(with([](Meeting& m) { m.rank = 2; }), {"rank 2 of a job of 2 workers, expected 0 to 1"});
  expect_invalid(with([](Meeting& m) { m.rank = -1; }), {"rank -1"});
  expect_invalid(with([](Meeting& m) { m.offer.resize(kMostOfferBytes + 1); }),
                 {"rank 0 offers 16777217 bytes"});
  for (const std::string host : {"", "10.1.2.3", "0.0.0.0", "node17", "::"}) {
    for (const int rank : {0, 1}) {
      expect_invalid(with([&](Meeting& m) {
                       m.place = {.host = host, .port = 4711};
                       m.rank = rank;
                     }),
                     {"no secret", ":4711",
                      "head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE; export "
                      "ONESUM_SECRET_FILE=FILE"});
    }
  }
}

TEST_F(RendezvousTest, OnEveryAddressOfTheMachine) {
  Job job(Over::kTcp, 3);
  job.secret = Secret::from_text(kSecret);
  Workers workers;
  for (int rank = 0; rank < 3; ++rank) {
    Meeting meeting = job.meeting(rank);
    meeting.place.host = "";
    // This one finds worker 0 over loopback: the others must reach it all the same.
    if (rank == 1) {
      meeting.lookup = [lookup = meeting.lookup](Clock::time_point deadline) {
        MeetingPlace place = parse_places(lookup(deadline)).front();
        return "no-such-host.invalid:1,127.0.0.1:" + std::to_string(place.port);
      };
    }
    workers.push_back(std::make_unique<Worker>(std::move(meeting)));
  }
  expect_met(outcomes_of(workers));
}

// A worker that closes before it has said who it is, is nobody.
TEST_F(RendezvousTest, WhoLeavesBeforeTheHelloChangesNothing) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    Job job(over, 2);
    job.secret = Secret::from_text(kSecret);
    Worker leader(job.meeting(0));
    const Passport passport{job.secret, job.meeting(1).job};
    raw_connection(job.place());
    write_raw(raw_connection(job.place()), "onesum");
    write_raw(raw_connection(job.place()), std::string_view("onesum\0\1\1\1", 10));
    shaken_hands(job.place(), passport);
    write_raw(shaken_hands(job.place(), passport).socket(), std::string_view("\0\1\0\0\1\0", 6));
    Worker member(job.meeting(1));
    expect_met({&leader.outcome(), &member.outcome()});
  }
}

enum class LeavesAfter { kHello, kCards, kReady };

// A rank 1 of three that leaves too early. It never listens.
void play_rank_one(Job& job, LeavesAfter step) {
  const Meeting meeting = job.meeting(1);
  const Passport passport{meeting.secret, meeting.job};
  Connection connection = shaken_hands(job.place(), passport);
  Hello hello;
  hello.version = ONESUM_VERSION;
  hello.rank = 1;
  hello.size = 3;
  hello.job = meeting.job;
  hello.settings = meeting.settings;
  hello.patience_milliseconds = 30000;
  const Fd listener = listen_at(unix_address("")).socket;
  hello.card.unix_name = place_of(local_address(listener)).unix_name;
  connection.send(number_of(Kind::kHello), encode(hello), now() + 10s);
  if (step == LeavesAfter::kHello) return;
  for (int i = 0; i < 4; ++i) connection.receive(now() + 10s);
  if (step == LeavesAfter::kCards) return;
  connection.send(number_of(Kind::kReady), {}, now() + 10s);
}

TEST_F(RendezvousTest, WhoLeavesAfterTheHelloIsNamed) {
  for (const LeavesAfter step : {LeavesAfter::kHello, LeavesAfter::kCards, LeavesAfter::kReady}) {
    Job job(Over::kUnix, 3);
    Worker leader(job.meeting(0));
    Worker member(job.meeting(2));
    play_rank_one(job, step);
    for (Worker* worker : {&leader, &member}) {
      EXPECT_FALSE(worker->outcome().met);
      EXPECT_NE(worker->outcome().text.find("rank 1 "), std::string::npos) << worker->outcome().text;
    }
    // Whether worker 0 sees it leave or the other fails to reach it, both say the same.
    EXPECT_EQ(leader.outcome().text, member.outcome().text);
    EXPECT_EQ(leader.outcome().code, member.outcome().code);
    if (step == LeavesAfter::kHello) {
      expect_failed(leader.outcome(), ErrorCode::kAborted,
                    {"a worker was lost while the workers met: rank 1 (process ", "closed the connection"});
    }
  }
}

enum class LeaderLeavesAfter { kAccepting, kHandshake, kHello, kWelcome, kCards };

TEST_F(RendezvousTest, ALeaderThatLeavesIsNamed) {
  for (const auto step :
       {LeaderLeavesAfter::kAccepting, LeaderLeavesAfter::kHandshake, LeaderLeavesAfter::kHello,
        LeaderLeavesAfter::kWelcome, LeaderLeavesAfter::kCards}) {
    Job job(Over::kUnix, 2, 500ms);
    const Meeting meeting = job.meeting(1);
    const Passport passport{std::nullopt, meeting.job};
    Fd listener = listen_at(unix_address(meeting.place.unix_name)).socket;
    Worker member(job.meeting(1));
    if (step == LeaderLeavesAfter::kAccepting) {
      std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
      wait_for(polled, now() + 10s);
      accept_one(listener);
      listener.reset();
      expect_failed(member.outcome(), ErrorCode::kDeadlineExceeded, {"rank 1 did not find worker 0 within"});
      continue;
    }
    Connection connection = accepted_and_shaken(listener, passport);
    if (step >= LeaderLeavesAfter::kHello) connection.receive(now() + 10s);
    if (step >= LeaderLeavesAfter::kWelcome)
      connection.send(number_of(Kind::kWelcome), encode(Ticket{}), now() + 10s);
    if (step >= LeaderLeavesAfter::kCards) {
      for (std::uint32_t rank : {0U, 1U}) {
        connection.send(number_of(Kind::kCard), encode(CardOf{rank, {}}), now() + 10s);
      }
    }
    connection.close();
    expect_failed(member.outcome(), ErrorCode::kAborted,
                  {"worker 0 (process ", "closed the connection", "while the workers met"});
  }
}

// What a port scan, a browser or an attacker does while workers meet.
void annoy(const MeetingPlace& place, const std::string& job, std::vector<Fd>& kept) {
  for (int i = 0; i < 20; ++i) kept.push_back(raw_connection(place));  // connect and say nothing
  raw_connection(place);
  kept.push_back(raw_connection(place));
  write_raw(kept.back(), "GET / HTTP/1.1\r\nHost: worker\r\n\r\n");
  EXPECT_EQ(read_all(kept.back()), "");  // not a word
  kept.push_back(raw_connection(place));
  write_raw(kept.back(), std::string(1000, '\xff'));
  kept.push_back(raw_connection(place));
  write_raw(kept.back(), std::string_view("onesum\0\1\1\1\0\0", 12));  // half a greeting
  const Passport none{std::nullopt, job};
  expect_error([&] { shaken_hands(place, none); }, ErrorCode::kInvalidArgument,
               {"has a secret, and this worker has none"});
  const Passport wrong{Secret::from_text("another secret, also long enough"), job};
  expect_error([&] { shaken_hands(place, wrong); }, ErrorCode::kInvalidArgument, {"knows another secret"});
}

TEST_F(RendezvousTest, StrangersChangeNothing) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    Job job(over, 3);
    job.secret = Secret::from_text(kSecret);
    Worker leader(job.meeting(0));
    std::vector<Fd> kept;
    annoy(job.place(), job.meeting(1).job, kept);
    Worker first(job.meeting(1));
    annoy(job.place(), job.meeting(1).job, kept);
    Worker second(job.meeting(2));
    expect_met({&leader.outcome(), &first.outcome(), &second.outcome()});
  }
}

TEST_F(RendezvousTest, AWrongOrMissingSecretFailsAlone) {
  for (const Over over : {Over::kUnix, Over::kTcp}) {
    Job job(over, 3);
    job.secret = Secret::from_text(kSecret);
    Worker leader(job.meeting(0));
    Worker member(job.meeting(1));
    for (const auto& secret :
         {std::optional<Secret>(), std::optional(Secret::from_text("0123456789abcdef"))}) {
      Meeting meeting = job.meeting(2);
      meeting.secret = secret;
      expect_failed(
          outcome_of(std::move(meeting)), ErrorCode::kInvalidArgument,
          {"worker 0 at ", secret ? "knows another secret" : "has a secret, and this worker has none",
           "all workers need the same ONESUM_SECRET"});
    }
    Worker last(job.meeting(2));
    expect_met({&leader.outcome(), &member.outcome(), &last.outcome()});
  }
  Job job(Over::kUnix, 2);
  Worker leader(job.meeting(0));
  Meeting meeting = job.meeting(1);
  meeting.secret = Secret::from_text(kSecret);
  expect_failed(outcome_of(std::move(meeting)), ErrorCode::kInvalidArgument,
                {"has no secret, and this worker has one"});
  Worker member(job.meeting(1));
  expect_met({&leader.outcome(), &member.outcome()});
}

// One who knows the secret and not this meeting gets no further than that. The test plays worker 0 and
// rank 2.
TEST_F(RendezvousTest, AnIntroductionNeedsTheTicket) {
  Job job(Over::kUnix, 3);
  const Meeting meeting = job.meeting(1);
  const Passport passport{std::nullopt, meeting.job};
  const Fd listener = listen_at(unix_address(meeting.place.unix_name)).socket;
  Worker member(job.meeting(1));
  Connection leader = accepted_and_shaken(listener, passport);
  const Hello hello = decode_hello(leader.receive(now() + 10s).payload);
  const Ticket ticket{std::byte{7}};
  leader.send(number_of(Kind::kWelcome), encode(ticket), now() + 10s);
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    leader.send(number_of(Kind::kCard), encode(CardOf{rank, hello.card}), now() + 10s);
  }
  const MeetingPlace place{.unix_name = hello.card.unix_name};
  const Ticket other{std::byte{8}};
  for (const Introduction& wrong : {Introduction{other, 2}, {ticket, 0}, {ticket, 1}, {ticket, 3}}) {
    Connection stranger = shaken_hands(place, passport);
    stranger.send(number_of(Kind::kIntroduction), encode(wrong), now() + 10s);
    expect_error([&] { stranger.receive(now() + 10s); }, ErrorCode::kUnavailable, {"closed the connection"});
  }
  Connection second = shaken_hands(place, passport);
  second.send(number_of(Kind::kIntroduction), encode(Introduction{ticket, 2}), now() + 10s);
  EXPECT_EQ(leader.receive(now() + 10s).kind, number_of(Kind::kReady));
  leader.send(number_of(Kind::kGo), {}, now() + 10s);
  EXPECT_TRUE(member.outcome().met) << member.outcome().text;
}

TEST_F(RendezvousTest, DescriptorsCanBePassedOnOneMachine) {
  for (const Over over : {Over::kUnix, Over::kTcpAndUnix}) {
    Job job(over, 2);
    Worker leader(job.meeting(0));
    Worker member(job.meeting(1));
    expect_met({&leader.outcome(), &member.outcome()});
    const int standard_error = 2;
    leader.outcome().met->connections[1].send(kFirstFreeKind, {}, now() + 10s, std::span(&standard_error, 1));
    EXPECT_EQ(member.outcome().met->connections[0].receive(now() + 10s).descriptors.size(), 1U);
  }
}

TEST_F(RendezvousTest, AnAddressInUseIsAnError) {
  Job job(Over::kUnix, 2, 100ms);
  const Meeting meeting = job.meeting(0);
  const Made taken = listen_at(unix_address(meeting.place.unix_name));
  expect_failed(outcome_of(job.meeting(0)), ErrorCode::kUnavailable,
                {"rank 0 cannot listen at unix:onesum/", "Address already in use"});
}

TEST_F(RendezvousTest, NothingListensAfterwards) {
  Job job(Over::kTcp, 2);
  Worker leader(job.meeting(0));
  Worker member(job.meeting(1));
  expect_met({&leader.outcome(), &member.outcome()});
  std::string reason;
  const Made made = start_connecting(resolve(job.place(), reason).front());
  std::vector<pollfd> polled{{made.socket.get(), POLLOUT, 0}};
  if (made.socket) wait_for(polled, now() + 10s);
  EXPECT_EQ(made.socket ? finish_connecting(made.socket) : made.error, ECONNREFUSED);
}

}  // namespace
}  // namespace onesum::cluster
