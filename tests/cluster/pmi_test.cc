// The wire protocol of PMI, against launchers that are played by a thread. Real ones: launchers_test.cc.
#include "cluster/pmi.h"

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/address_board.h"
#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::expect_error;
using testing::expect_invalid;

Clock::time_point soon() { return now() + 30s; }

// A launcher that gives an answer to each line, and remembers the lines. An answer without line end is
// followed by the end of the connection.
class PlayedLauncher {
 public:
  using Answers = std::function<std::string(const std::string& line)>;

  explicit PlayedLauncher(Answers answers) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours_ = fds[0];
    thread_ = std::thread([this, theirs = fds[1], answers = std::move(answers)] {
      serve(theirs, answers);
      ::close(theirs);
    });
  }
  ~PlayedLauncher() { lines(); }
  PlayedLauncher(const PlayedLauncher&) = delete;
  PlayedLauncher& operator=(const PlayedLauncher&) = delete;

  int fd() const { return ours_; }

  // Ends the connection. Keys, which are all different, are shown as KEY.
  const std::vector<std::string>& lines() {
    if (thread_.joinable()) {
      ::shutdown(ours_, SHUT_RDWR);
      thread_.join();
      ::close(ours_);
      for (std::string& line : lines_) hide_key(line);
    }
    return lines_;
  }

 private:
  void hide_key(std::string& line) {
    const std::size_t at = line.find("key=onesum-address-");
    if (at == std::string::npos) return;
    const std::string key = line.substr(at + 4, line.find(' ', at) - at - 4);
    EXPECT_TRUE(keys_.insert(key).second) << key << " again";
    line.replace(at + 4, key.size(), "KEY");
  }

  void serve(int fd, const Answers& answers) {
    std::string line;
    for (char c = 0; ::read(fd, &c, 1) == 1;) {
      if (c != '\n') {
        line += c;
        continue;
      }
      lines_.push_back(line);
      const std::string answer = answers(line);
      // Byte by byte: lines arrive in pieces.
      for (const char byte : answer) {
        if (::send(fd, &byte, 1, MSG_NOSIGNAL) != 1) return;
      }
      if (!answer.ends_with("\n")) return;
      line.clear();
    }
  }

  int ours_ = -1;
  std::vector<std::string> lines_;
  std::set<std::string> keys_;
  std::thread thread_;
};

// What a launcher says to a worker, with `changed` in place of the answer to lines that begin with `line`.
PlayedLauncher::Answers usual(const std::string& changed_line = "-", const std::string& changed = "") {
  return [=](const std::string& line) -> std::string {
    if (line.starts_with(changed_line)) return changed;
    if (line == "cmd=init pmi_version=1 pmi_subversion=1")
      return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (line == "cmd=get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_7\n";
    if (line.starts_with("cmd=put ")) return "cmd=put_result rc=0 msg=success\n";
    if (line == "cmd=barrier_in") return "cmd=barrier_out\n";
    if (line.starts_with("cmd=get ")) return "cmd=get_result rc=0 msg=success value=h=1:2\n";
    if (line == "cmd=finalize") return "cmd=finalize_ack\n";
    return "cmd=unknown\n";
  };
}

TEST(Pmi, WorkerZeroPublishes) {
  PlayedLauncher launcher(usual());
  {
    const auto board = open_pmi_board(launcher.fd(), MpiInProcess::kNo, soon());
    board->publish("unix:a", soon());
    board->publish("h:1", soon());
  }
  EXPECT_THAT(launcher.lines(),
              ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_my_kvsname",
                          "cmd=put kvsname=kvs_7 key=KEY value=unix:a", "cmd=barrier_in",
                          "cmd=put kvsname=kvs_7 key=KEY value=h:1", "cmd=barrier_in", "cmd=finalize"));
}

TEST(Pmi, OthersLookUp) {
  PlayedLauncher launcher(usual());
  EXPECT_EQ(open_pmi_board(launcher.fd(), MpiInProcess::kNo, soon())->lookup(soon()), "h=1:2");
  EXPECT_THAT(launcher.lines(),
              ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_my_kvsname",
                          "cmd=barrier_in", "cmd=get kvsname=kvs_7 key=KEY", "cmd=finalize"));
}

TEST(Pmi, AGuestOfMpiNeitherBeginsNorEnds) {
  PlayedLauncher launcher(usual());
  EXPECT_EQ(open_pmi_board(launcher.fd(), MpiInProcess::kInitialized, soon())->lookup(soon()), "h=1:2");
  EXPECT_THAT(launcher.lines(), ElementsAre("cmd=get_maxes", "cmd=get_my_kvsname", "cmd=barrier_in",
                                            "cmd=get kvsname=kvs_7 key=KEY"));
}

TEST(Pmi, WrongAnswersAreUnavailable) {
  const auto lookup = [](const std::string& line, const std::string& answer) {
    PlayedLauncher launcher(usual(line, answer));
    open_pmi_board(launcher.fd(), MpiInProcess::kNo, soon())->lookup(soon());
  };
  const auto expect = [&](const std::string& line, const std::string& answer, std::string_view part) {
    expect_error([&] { lookup(line, answer); }, ErrorCode::kUnavailable, {"PMI_FD", part});
  };
  expect("cmd=init", "cmd=response_to_init rc=-1\n", "refused");
  expect("cmd=init", "hello\n", "expected cmd=response_to_init");
  expect("cmd=init", "", "closed the connection");
  expect("cmd=init", "cmd=response", "closed the connection");
  expect("cmd=get_maxes", "cmd=maxes\n", "vallen_max=");
  expect("cmd=get_maxes", "cmd=maxes vallen_max=-3\n", "a number after vallen_max");
  expect("cmd=get_my_kvsname", "cmd=my_kvsname xkvsname=a\n", "expected kvsname=");
  expect("cmd=get ", "cmd=get_result rc=-1 msg=key_not_found\n", "key_not_found");
  expect("cmd=get ", "cmd=get_result rc=0\n", "expected value=");
  expect("cmd=get ", std::string(10'000, 'x') + "\n", "more than 4096");
}

TEST(Pmi, PublishesWhatFits) {
  PlayedLauncher launcher(usual("cmd=get_maxes", "cmd=maxes vallen_max=8\n"));
  const auto board = open_pmi_board(launcher.fd(), MpiInProcess::kNo, soon());
  board->publish("1234567", soon());
  expect_error([&] { board->publish("12345678", soon()); }, ErrorCode::kUnavailable, {"less than 8"});
  for (const std::string& text :
       {std::string(), std::string("a b"), std::string("a\ncmd=abort"), std::string(513, 'x')})
    expect_invalid([&] { board->publish(text, soon()); }, {"cannot be published"});
}

// The others have not come: the barrier is never answered.
TEST(Pmi, DeadlinesHold) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  expect_error([&] { open_pmi_board(fds[0], MpiInProcess::kNo, now() + 20ms); }, ErrorCode::kDeadlineExceeded,
               {"did not answer", "cmd=init", "other workers may not have come"});
  expect_error([&] { open_pmi_board(fds[0], MpiInProcess::kNo, now() - 1s); }, ErrorCode::kDeadlineExceeded,
               {});
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(Pmi, AProgramWithoutMpiHasTheConnectionForItself) { EXPECT_EQ(find_mpi(), MpiInProcess::kNo); }

TEST(AddressBoard, OfAFixedAddress) {
  Invitation invitation;
  EXPECT_EQ(open_address_board(invitation, soon()), nullptr);
  invitation.venue = LocalSocket{"s"};
  EXPECT_EQ(open_address_board(invitation, soon())->lookup(soon()), "unix:s");
  invitation.venue = HostPort{"::1", 7};
  const auto board = open_address_board(invitation, soon());
  board->publish("[::1]:7", soon());
  EXPECT_EQ(board->lookup(soon()), "[::1]:7");
}

}  // namespace
}  // namespace onesum::cluster
