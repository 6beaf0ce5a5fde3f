// The rendezvous between processes: as workers, killed ones, and strangers of another user.
#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/meetings.h"
#include "cluster/rendezvous.h"
#include "cluster/socket.h"
#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;
using namespace onesum::testing;

constexpr uid_t kNobody = 65534;

// A forked process that runs a function and tells what it returned. Killed if it takes long, or at the end.
class Process {
 public:
  explicit Process(const std::function<std::string()>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::alarm(60);
      set_log_level(LogLevel::kError);
      const std::string text = body();
      const ssize_t written = ::write(ends[1], text.data(), text.size());
      ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    output_ = Fd(ends[0]);
  }
  ~Process() {
    if (process_ > 0) {
      kill();
      ::waitpid(process_, nullptr, 0);
    }
  }
  Process(Process&& other) noexcept
      : process_(std::exchange(other.process_, -1)), output_(std::move(other.output_)) {}
  Process& operator=(Process&&) = delete;

  void kill() const { ::kill(process_, SIGKILL); }
  void stop() const { ::kill(process_, SIGSTOP); }

  // Waits until it has ended.
  std::string output() {
    std::string text;
    std::array<char, 1024> buffer;
    for (;;) {
      const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  pid_t process_ = -1;
  Fd output_;
};

class RendezvousProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kWarning); }
};

// A free port of this machine, which a worker 0 started at once will find free, too.
std::uint16_t free_port() {
  return place_of(local_address(listen_at(*ip_address("127.0.0.1", 0)).socket)).port;
}

Meeting with_place(Meeting meeting, const MeetingPlace& place) {
  meeting.place = place;
  meeting.lookup = nullptr;
  meeting.publish = nullptr;
  return meeting;
}

// What the workers of a process told each other: every other's text, in rank order.
std::string exchanged(Meeting meeting) {
  const int rank = meeting.rank;
  Outcome outcome = outcome_of(std::move(meeting));
  if (!outcome.met) return std::string(to_string(outcome.code)) + ": " + outcome.text;
  std::string heard;
  for (Connection& connection : outcome.met->connections) {
    if (connection.is_open()) connection.send(100, bytes_of(std::to_string(rank)), now() + 20s);
  }
  for (Connection& connection : outcome.met->connections) {
    if (!connection.is_open()) continue;
    for (const std::byte byte : connection.receive(now() + 20s).payload) heard += static_cast<char>(byte);
  }
  return heard;
}

TEST_F(RendezvousProcessTest, ProcessesMeet) {
  for (const bool over_tcp : {false, true}) {
    for (const int size : {2, 3, 5, 8}) {
      Job job(Over::kUnix, size);
      job.secret = Secret::from_text(kSecret);
      const MeetingPlace place =
          over_tcp ? MeetingPlace{.host = "localhost", .port = free_port()} : job.meeting(0).place;
      std::vector<Process> processes;
      for (int rank = size - 1; rank >= 0; --rank) {
        processes.emplace_back([&] { return exchanged(with_place(job.meeting(rank), place)); });
      }
      for (int rank = size - 1; rank >= 0; --rank) {
        std::string expected = "01234567";
        expected.resize(static_cast<std::size_t>(size));
        std::erase(expected, static_cast<char>('0' + rank));
        EXPECT_EQ(processes[static_cast<std::size_t>(size - 1 - rank)].output(), expected);
      }
    }
  }
}

TEST_F(RendezvousProcessTest, AKilledOneIsNamedByAll) {
  for (const int killed : {0, 3}) {
    Job job(Over::kUnix, 4);  // rank 2 never comes, so that they wait
    std::vector<Process> processes;
    for (const int rank : {0, 1, 3}) {
      processes.emplace_back(
          [&] { return exchanged(with_place(job.meeting(rank), job.meeting(rank).place)); });
    }
    std::this_thread::sleep_for(300ms);
    processes[killed == 3 ? 2 : static_cast<std::size_t>(killed)].kill();
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string output = processes[i].output();
      if (i == (killed == 3 ? 2U : static_cast<std::size_t>(killed))) {
        EXPECT_EQ(output, "");
      } else {
        const std::string name = killed == 0 ? "worker 0 (" : "rank " + std::to_string(killed) + " (";
        EXPECT_EQ(output.find("aborted: "), 0U) << output;
        EXPECT_NE(output.find(name), std::string::npos) << output;
      }
    }
  }
}

TEST_F(RendezvousProcessTest, AStoppedWorkerZeroHoldsNobodyForEver) {
  Job job(Over::kUnix, 3, 1500ms);
  Process leader([&] { return exchanged(job.meeting(0)); });
  Process member([&] { return exchanged(job.meeting(1)); });
  std::this_thread::sleep_for(300ms);
  leader.stop();
  const std::string output = member.output();
  EXPECT_EQ(output.find("deadline_exceeded: worker 0 (process "), 0U) << output;
}

// As another user of the machine.
std::string as_nobody(const std::function<std::string()>& body) {
  if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return "could not become nobody";
  return body();
}

#define SKIP_UNLESS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can act as another user"

TEST_F(RendezvousProcessTest, AnotherUserGetsNoWordOutOfAWorker) {
  SKIP_UNLESS_ROOT();
  Job job(Over::kUnix, 2);
  const MeetingPlace place = job.meeting(0).place;
  Process leader([&] { return exchanged(job.meeting(0)); });
  // A stranger who speaks the protocol.
  Process stranger([&] {
    return as_nobody([&]() -> std::string {
      const Fd socket = raw_connection(place);
      write_raw(socket, std::string_view("onesum\0\1\1\0", 10));
      write_raw(socket, std::string(Handshake::kGreetingBytes - 10, '\0'));
      return read_all(socket).empty() ? "not a word" : "something was said";
    });
  });
  EXPECT_EQ(stranger.output(), "not a word");
  // A worker that was started as another user: it is the one who says so.
  Process lost([&] { return as_nobody([&] { return exchanged(with_place(job.meeting(1), place)); }); });
  const std::string output = lost.output();
  EXPECT_EQ(output.find("unavailable: worker 0 cannot be reached: unix:onesum/0/"), 0U) << output;
  EXPECT_NE(output.find("of user 0, expected user 65534"), std::string::npos) << output;
  Process member([&] { return exchanged(job.meeting(1)); });
  EXPECT_EQ(member.output(), "0");
  EXPECT_EQ(leader.output(), "1");
}

TEST_F(RendezvousProcessTest, ASquatterIsToldNothing) {
  SKIP_UNLESS_ROOT();
  Job job(Over::kUnix, 2, 200ms);
  const MeetingPlace place = job.meeting(0).place;
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  Process squatter([&] {
    return as_nobody([&]() -> std::string {
      const Fd listener = listen_at(unix_address(place.unix_name)).socket;
      if (::write(ready[1], "x", 1) != 1) return "?";
      std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
      wait_for(polled, now() + 20s);
      return read_all(accept_one(listener).socket).empty() ? "not a word" : "something was said";
    });
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  expect_failed(outcome_of(job.meeting(1)), ErrorCode::kUnavailable,
                {"worker 0 cannot be reached: unix:onesum/0/", "of user 65534, expected user 0",
                 "another user has taken the name"});
  EXPECT_EQ(squatter.output(), "not a word");
  Job other(Over::kUnix, 2, 200ms);
  const MeetingPlace taken = other.meeting(0).place;
  Process second([&] {
    return as_nobody([&]() -> std::string {
      const Fd listener = listen_at(unix_address(taken.unix_name)).socket;
      if (::write(ready[1], "x", 1) != 1) return "?";
      std::this_thread::sleep_for(30s);
      return "";
    });
  });
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  expect_failed(outcome_of(other.meeting(0)), ErrorCode::kUnavailable,
                {"rank 0 cannot listen at unix:onesum/0/", "another process has it"});
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace onesum::cluster
