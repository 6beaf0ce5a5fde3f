#include "cluster/meetings.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/dialer.h"
#include "cluster/socket.h"

namespace onesum::testing {

using namespace std::chrono_literals;
using namespace onesum::cluster;

std::string_view to_string(Over over) {
  switch (over) {
    case Over::kUnix:
      return "unix";
    case Over::kTcp:
      return "tcp";
    case Over::kTcp6:
      return "tcp of IPv6";
    case Over::kTcpAndUnix:
      return "tcp on one machine";
  }
  return "";
}

bool is_possible(Over over) {
  return over != Over::kTcp6 || static_cast<bool>(listen_at(*ip_address("::1", 0)).socket);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Job::Board {
  std::promise<std::string> promise;
  std::shared_future<std::string> published = promise.get_future().share();
};

Job::Job(Over over, int size, std::chrono::milliseconds time)
    : patience(time), over_(over), size_(size), board_(std::make_shared<Board>()) {
  static std::atomic<int> number = 0;
  name_ = "test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

Meeting Job::meeting(int rank) {
  Meeting meeting;
  meeting.rank = rank;
  meeting.size = size_;
  meeting.job = name_;
  meeting.secret = secret;
  meeting.deadline = now() + patience;
  meeting.offer = bytes_of("offer of " + std::to_string(rank));
  meeting.settings = {{"ONESUM_TRANSPORT", "auto"}, {"ONESUM_OTHER", "1"}};
  if (over_ == Over::kUnix) {
    meeting.place = place_on_this_machine(name_);
  } else {
    meeting.place.host = over_ == Over::kTcp6 ? "::1" : "127.0.0.1";
    if (over_ == Over::kTcpAndUnix) meeting.machine = "this machine";
    meeting.lookup = [board = board_](Clock::time_point deadline) {
      if (board->published.wait_until(deadline) != std::future_status::ready) {
        throw Error(ErrorCode::kDeadlineExceeded, "nothing was published");
      }
      return board->published.get();
    };
  }
  meeting.publish = [board = board_](const std::string& places) { board->promise.set_value(places); };
  return meeting;
}

MeetingPlace Job::place() { return parse_places(board_->published.get()).front(); }

Outcome outcome_of(Meeting meeting) {
  Outcome outcome;
  try {
    outcome.met = meet(std::move(meeting));
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.text = error.what();
  }
  return outcome;
}

Worker::Worker(Meeting meeting)
    : thread_([this, meeting = std::move(meeting)]() mutable { outcome_ = outcome_of(std::move(meeting)); }) {
}

Outcome& Worker::outcome() {
  if (thread_.joinable()) thread_.join();
  return outcome_;
}

namespace {

void expect_talk(Connection& from, Connection& to, int from_rank, int to_rank) {
  constexpr std::uint16_t kKind = kFirstFreeKind;
  const std::string text = std::to_string(from_rank) + " to " + std::to_string(to_rank);
  from.send(kKind, bytes_of(text), now() + 10s);
  const Message message = to.receive(now() + 10s);
  EXPECT_EQ(message.kind, kKind);
  EXPECT_EQ(message.payload, bytes_of(text));
  EXPECT_EQ(from.peer().find("rank " + std::to_string(to_rank) + " ("), 0U) << from.peer();
}

}  // namespace

void expect_met(std::vector<Outcome*> outcomes) {
  const int size = static_cast<int>(outcomes.size());
  for (int rank = 0; rank < size; ++rank) {
    ASSERT_TRUE(outcomes[rank]->met) << "rank " << rank << ": " << outcomes[rank]->text;
    const Met& met = *outcomes[rank]->met;
    ASSERT_EQ(met.offers.size(), outcomes.size());
    ASSERT_EQ(met.connections.size(), outcomes.size());
    for (int other = 0; other < size; ++other) {
      EXPECT_EQ(met.offers[other], bytes_of("offer of " + std::to_string(other)));
      EXPECT_EQ(met.connections[other].is_open(), other != rank);
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      expect_talk(outcomes[rank]->met->connections[other], outcomes[other]->met->connections[rank], rank,
                  other);
    }
  }
}

void expect_failed(const Outcome& outcome, ErrorCode code, std::initializer_list<std::string_view> parts) {
  EXPECT_FALSE(outcome.met);
  EXPECT_EQ(to_string(outcome.code), to_string(code)) << outcome.text;
  for (const std::string_view part : parts) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " is not in: " << outcome.text;
  }
}

Fd raw_connection(const MeetingPlace& place) {
  std::string reason;
  const auto addresses = resolve(place, reason);
  for (const Clock::time_point end = now() + 10s; now() < end; std::this_thread::sleep_for(2ms)) {
    Made made = start_connecting(addresses.at(0));
    if (!made.socket) continue;
    std::vector<pollfd> polled{{made.socket.get(), POLLOUT, 0}};
    wait_for(polled, end);
    if (finish_connecting(made.socket) == 0) return std::move(made.socket);
  }
  ADD_FAILURE() << "nobody listens at " << to_string(place);
  return Fd();
}

void write_raw(const Fd& socket, std::string_view bytes) {
  // What the other end no longer wants to read is of no interest here.
  [[maybe_unused]] const ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string read_all(const Fd& socket) {
  std::string text;
  for (const Clock::time_point end = now() + 10s; now() < end;) {
    std::vector<pollfd> polled{{socket.get(), POLLIN, 0}};
    wait_for(polled, end);
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EAGAIN) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ADD_FAILURE() << "the other end does not close";
  return text;
}

Connection shaken_hands(const MeetingPlace& place, const Passport& passport) {
  Dialer dialer("the worker", [&](std::string& reason) { return resolve(place, reason); }, passport);
  for (const Clock::time_point end = now() + 10s; now() < end;) {
    if (auto connection = dialer.proceed()) return std::move(*connection);
    std::vector<pollfd> polled;
    dialer.add_to(polled);
    wait_for(polled, std::min(end, dialer.next_deadline()));
  }
  ADD_FAILURE() << dialer.last_failure();
  return {};
}

Connection accepted_and_shaken(const Fd& listener, const Passport& passport) {
  const Clock::time_point end = now() + 10s;
  Made made = accept_one(listener);
  while (!made.socket && now() < end) {
    std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
    wait_for(polled, end);
    made = accept_one(listener);
  }
  Handshake handshake(std::move(made.socket), Handshake::Role::kListener, passport);
  while (handshake.proceed() == Handshake::State::kUnderWay && now() < end) {
    std::vector<pollfd> polled{{handshake.fd(), handshake.events(), 0}};
    wait_for(polled, end);
  }
  EXPECT_EQ(handshake.state(), Handshake::State::kDone) << handshake.reason();
  return {handshake.take_socket(), "a worker"};
}

}  // namespace onesum::testing
