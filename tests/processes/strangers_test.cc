// People who are not part of a job, while its workers meet and while they call: nobody gets in, nothing
// stops, and results are right.
#include "strangers.h"

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "cluster/handshake.h"
#include "cluster/socket.h"
#include "shared_count.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kWorkers = 3;
constexpr uid_t kUser = 65533;
constexpr uid_t kStranger = 65534;  // nobody

std::string one_call(const Cluster& cluster, int own) {
  return results_of(cluster, own, "pscpu/pscpu")[own < 0 ? 0 : static_cast<std::size_t>(own)];
}

std::string right_result() {
  static const std::string text =
      run_alone([] { return one_call(Cluster::embedded(worker_names(kWorkers), kDevices), -1); });
  return text;
}

// Calls until it is told to stop; "right" if all results were.
struct Caller {
  const SharedCount& calls;
  const SharedCount& stops;

  std::string operator()(int rank) const {
    Cluster cluster = Cluster::from_environment();
    // All must stop after the same call: worker 0 says which one it is.
    ReductionToOneDevice ops({}, {}, cluster);
    for (;;) {
      if (one_call(cluster, rank) != right) return "wrong";
      calls.add_one();
      const Tensor stop = Tensor::from<float>({static_cast<float>(stops.value())}, {1}, "CPU:0");
      if (ops.broadcast(stop, "CPU:0", 0).tensor().data<float>()[0] > 0) return "right";
    }
  }

  std::string right = right_result();
};

void expect_right(const std::vector<WorkerEnd>& ends) {
  for (const WorkerEnd& end : ends) {
    EXPECT_EQ(end.text, "right");
    EXPECT_EQ(end.signal, 0);
  }
}

Environment over(const std::string& transport) {
  return {{"ONESUM_TRANSPORT", transport}, {"ONESUM_SECRET", "known to the workers only"}};
}

// Knocks wherever a worker listens, and says everything. Returns how many doors there were.
int knock(const Workers& workers, bool are_shut) {
  int doors = 0;
  for (int rank = 0; rank < kWorkers; ++rank) {
    for (const std::uint16_t port : listening_ports(workers.process(rank))) {
      ++doors;
      for (const std::string& words : strange_words()) {
        const Fd socket = connection_to(port);
        if (are_shut) {
          EXPECT_FALSE(socket.is_open()) << "worker " << rank << " takes connections while it works";
        }
        if (socket.is_open()) say(socket, words);
      }
    }
  }
  return doors;
}

TEST(StrangersOfProcesses, GetNothingFromWorkersThatCall) {
  for (const std::string transport : {"tcp", "ucx"}) {
    const SharedCount calls;
    const SharedCount stops;
    Workers workers(kWorkers, Caller{calls, stops}, over(transport));
    ASSERT_TRUE(calls.comes_to(kWorkers));
    const int doors = knock(workers, true);
    if (transport == "tcp") {
      EXPECT_EQ(doors, 0) << "who works needs nobody to come";
    } else {
      EXPECT_GT(doors, 0);  // UCX's
    }
    ASSERT_TRUE(calls.comes_to(calls.value() + kWorkers));
    stops.add_one();
    expect_right(workers.wait());
  }
}

// Each group takes connections of its own, for a moment.
TEST(StrangersOfProcesses, GetNothingWhileGroupsAreMade) {
  const SharedCount stops;
  Workers workers(
      kWorkers,
      [&stops](int rank) -> std::string {
        Cluster cluster = Cluster::from_environment();
        ReductionToOneDevice ops({}, {}, cluster);
        const std::string right = one_call(cluster, rank);
        for (;;) {
          Cluster group = cluster.duplicate();
          if (one_call(group, rank) != right) return "wrong";
          group.close();
          const Tensor stop = Tensor::from<float>({static_cast<float>(stops.value())}, {1}, "CPU:0");
          if (ops.broadcast(stop, "CPU:0", 0).tensor().data<float>()[0] > 0) return "right";
        }
      },
      over("tcp"));
  int doors = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (doors < 5 && std::chrono::steady_clock::now() < end) doors += knock(workers, false);
  stops.add_one();
  expect_right(workers.wait());
  if (doors == 0) GTEST_SKIP() << "they listen so shortly that nobody was found listening in 30 s";
}

// Between a worker and worker 0: passes everything on, and keeps what the worker says.
class Eavesdropper {
 public:
  explicit Eavesdropper(std::uint16_t leader)
      : leader_(leader), record_(::memfd_create("record", MFD_CLOEXEC)) {
    listener_ = cluster::listen_at(*cluster::ip_address("127.0.0.1", 0)).socket;
    port_ = cluster::place_of(cluster::local_address(listener_)).port;
  }
  std::uint16_t port() const { return port_; }

  // In a process of its own.
  std::string listen() const {
    pollfd polled{listener_.get(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    const Fd worker = cluster::accept_one(listener_).socket;
    Fd leader;
    while (!leader) leader = connection_to(leader_);
    std::array<pollfd, 2> both{{{worker.get(), POLLIN, 0}, {leader.get(), POLLIN, 0}}};
    while (::poll(both.data(), both.size(), -1) > 0) {
      if (both[0].revents != 0 && !pass(worker, leader, true)) break;
      if (both[1].revents != 0 && !pass(leader, worker, false)) break;
    }
    return "";
  }

  // What was heard, once that is more than a handshake.
  std::string record() const {
    struct stat file{};
    do {
      ::fstat(record_.get(), &file);
    } while (file.st_size <= static_cast<off_t>(cluster::Handshake::kGreetingBytes + 32));
    std::string text(static_cast<std::size_t>(file.st_size), ' ');
    return ::pread(record_.get(), text.data(), text.size(), 0) == file.st_size ? text : "";
  }

 private:
  bool pass(const Fd& from, const Fd& to, bool is_kept) const {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(from.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return false;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    say(to, bytes);
    if (is_kept) (void)!::write(record_.get(), bytes.data(), bytes.size());
    return true;
  }

  std::uint16_t leader_;
  Fd record_;
  Fd listener_;
  std::uint16_t port_ = 0;
};

// Noise, a handshake of a worker once more, and a worker with another secret.
void expect_refused(std::uint16_t leader, const std::string& handshake) {
  for (const std::string& words : strange_words()) {
    const Fd socket = connection_to(leader);
    say(socket, words);
  }
  const Fd replayed = connection_to(leader);
  say(replayed, handshake);
  // The leader's greeting, and that the proof is wrong: nothing that could be of use.
  EXPECT_EQ(hear(replayed).size(), cluster::Handshake::kGreetingBytes + cluster::Handshake::kAnswerBytes);
  const std::string wrong = run_alone([&] {
    ::setenv("ONESUM_SECRET", "a secret of somebody else", 1);
    ::setenv("ONESUM_ADDRESS", ("127.0.0.1:" + std::to_string(leader)).c_str(), 1);
    ::setenv("ONESUM_RANK", "2", 1);
    ::setenv("ONESUM_SIZE", "3", 1);
    return std::to_string(Cluster::from_environment().size());
  });
  EXPECT_THAT(wrong, AllOf(StartsWith("error invalid_argument: "), HasSubstr("knows another secret")));
}

TEST(StrangersOfProcesses, ChangeNothingWhileWorkersMeet) {
  const SharedCount calls;
  const SharedCount stops;
  const SharedCount doors;
  const std::uint16_t leader = free_port();
  const Eavesdropper eavesdropper(leader);
  Workers listening(1, [&](int) { return eavesdropper.listen(); });
  const Caller caller{calls, stops};
  Workers workers(kWorkers,
                  [&](int rank) {
                    if (rank == 2) doors.comes_to(1);
                    const std::uint16_t port = rank == 1 ? eavesdropper.port() : leader;
                    ::setenv("ONESUM_ADDRESS", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
                    return caller(rank);
                  },
                  {{"ONESUM_SECRET", "known to the workers only"}, {"ONESUM_JOB", "strangers"}});
  const std::string handshake = eavesdropper.record();
  expect_refused(leader, handshake);
  EXPECT_EQ(calls.value(), 0);
  doors.add_one();
  stops.add_one();
  expect_right(workers.wait());
}

#define SKIP_UNLESS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can act as two other users"

int sum_within_reach(const Workers& workers) {
  int sum = 0;
  for (int rank = 0; rank < kWorkers; ++rank) sum += descriptors_within_reach(workers.process(rank));
  return sum;
}

TEST(StrangersOfProcesses, AnotherUserOfTheMachineGetsNothing) {
  SKIP_UNLESS_ROOT();
  const SharedCount calls;
  const SharedCount stops;
  const SharedCount doors;
  const SharedCount arrived;
  const Caller caller{calls, stops};
  Workers workers(kWorkers,
                  [&](int rank) {
                    become(kUser);
                    arrived.add_one();
                    if (rank == 2) doors.comes_to(1);
                    return caller(rank);
                  },
                  {{"ONESUM_TRANSPORT", "shm"}});
  ASSERT_TRUE(arrived.comes_to(kWorkers));
  const std::string prefix = "onesum-" + std::to_string(kUser) + "-";
  for (int i = 0; i < 30000 && listening_names(prefix).empty(); ++i) ::usleep(1000);
  ASSERT_THAT(listening_names(prefix), Not(IsEmpty()));
  const auto as = [](uid_t user, const std::function<std::string()>& body) {
    return run_alone([&] {
      become(user);
      return body();
    });
  };
  // While they meet, at the sockets that they listen at.
  EXPECT_EQ(as(kStranger,
               [&] {
                 std::string heard;
                 for (const std::string& name : listening_names(prefix)) {
                   for (const std::string& words : strange_words()) {
                     const Fd socket = connection_to(name);
                     say(socket, words);
                     heard += hear(socket);
                   }
                 }
                 return heard;
               }),
            "");
  doors.add_one();
  // While they call, at their memory.
  ASSERT_TRUE(calls.comes_to(kWorkers));
  EXPECT_THAT(listening_names(prefix), IsEmpty());
  EXPECT_EQ(as(kStranger, [&] { return std::to_string(sum_within_reach(workers)); }), "0");
  EXPECT_NE(as(kUser, [&] { return std::to_string(sum_within_reach(workers)); }), "0");
  stops.add_one();
  expect_right(workers.wait());
}

}  // namespace
}  // namespace onesum::testing
