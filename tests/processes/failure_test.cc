// What worker processes learn when one of them dies, stops, leaves or calls something else.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Calls until something happens.
std::string call_for_ever(const Cluster& cluster, int rank,
                          const std::function<void(int call)>& before_call) {
  MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("pscpu/pscpu"), 0, 0, 10,
                           cluster);
  for (int call = 0;; ++call) {
    before_call(call);
    const PerReplica value = replicas(rank, 1, DType::kFloat32, 5000, static_cast<std::uint64_t>(call));
    ops.reduce(ReduceOp::kSum, value, Destination(value));
  }
}

// All but one report the same, and it names the one.
void expect_same_verdict(const std::vector<WorkerEnd>& ends, int dead,
                         const std::vector<std::string>& parts) {
  const WorkerEnd& first = ends[dead == 0 ? 1 : 0];
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == dead) continue;
    EXPECT_EQ(ends[rank].text, first.text) << "worker " << rank;
    for (const std::string& part : parts) EXPECT_THAT(ends[rank].text, HasSubstr(part)) << "worker " << rank;
  }
}

TEST(FailureOfProcesses, DeathIsNamedByAll) {
  for (const int dead : {0, 1, 3}) {
    const std::vector<WorkerEnd> ends = run_workers(4, [&](int rank) {
      return call_for_ever(Cluster::from_environment(), rank, [&](int call) {
        if (rank == dead && call == 20) ::kill(::getpid(), SIGKILL);
      });
    });
    EXPECT_EQ(ends[static_cast<std::size_t>(dead)].signal, SIGKILL);
    expect_same_verdict(ends, dead, {"error aborted: ", "worker " + std::to_string(dead) + " ("});
  }
}

TEST(FailureOfProcesses, ExitWithoutCloseIsDeath) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    return call_for_ever(Cluster::from_environment(), rank, [&](int call) {
      if (rank == 1 && call == 5) ::_exit(0);
    });
  });
  expect_same_verdict(ends, 1, {"error aborted: ", "worker 1 ("});
}

// As something between machines does that forgets connections: those for messages, not those by which workers
// know of each other (which are Unix sockets here).
void cut_tcp_connections() {
  for (int socket = 3; socket < 1024; ++socket) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.ss_family == AF_INET) ::shutdown(socket, SHUT_RDWR);
  }
}

TEST(FailureOfProcesses, AConnectionThatIsCutIsToldByAll) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<WorkerEnd> ends =
      run_workers(3,
                  [&](int rank) {
                    return call_for_ever(Cluster::from_environment(), rank, [&](int call) {
                      if (rank == 1 && call == 5) cut_tcp_connections();
                    });
                  },
                  {{"ONESUM_TRANSPORT", "tcp"}});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  expect_same_verdict(ends, -1,
                      {"error aborted: call ", "the connection for messages to rank ",
                       "does something between the machines cut connections?"});
}

TEST(FailureOfProcesses, AStoppedWorkerIsNamedAndLearnsOfIt) {
  Workers workers(3,
                  [&](int rank) {
                    return call_for_ever(Cluster::from_environment(), rank, [&](int call) {
                      if (rank == 2 && call == 5) ::kill(::getpid(), SIGSTOP);
                    });
                  },
                  {{"ONESUM_PROGRESS_TIMEOUT", "2"}});
  std::thread waker([process = workers.process(2)] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    ::kill(process, SIGCONT);
  });
  const std::vector<WorkerEnd> ends = workers.wait();
  waker.join();
  expect_same_verdict(ends, 2, {"error aborted: ", "worker 2 (", "nothing was heard of it"});
  EXPECT_THAT(ends[2].text, StartsWith("error "));
}

TEST(FailureOfProcesses, AWorkerThatClosesIsNamed) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    Cluster cluster = Cluster::from_environment();
    return call_for_ever(cluster, rank, [&](int call) {
      if (rank != 1 || call < 5) return;
      cluster.close();
      throw std::runtime_error("closed");
    });
  });
  EXPECT_EQ(ends[1].text, "exception: closed");
  expect_same_verdict(ends, 1, {"error aborted: ", "worker 1 (", "closed the cluster"});
}

// Calls that differ on worker 1.
std::string call_differently(int rank, const std::function<void(CrossDeviceOps&, bool differs)>& call) {
  const Cluster cluster = Cluster::from_environment();
  MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("direct"), 0, 0, 10,
                           cluster);
  for (int i = 0; i < 3; ++i) call(ops, false);
  call(ops, rank == 1);
  return "no error";
}

void expect_mismatch(const std::function<void(CrossDeviceOps&, int rank, bool differs)>& call,
                     const std::vector<std::string>& parts) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    return call_differently(rank, [&](CrossDeviceOps& ops, bool differs) { call(ops, rank, differs); });
  });
  expect_same_verdict(ends, -1, parts);
}

TEST(FailureOfProcesses, CallsThatDifferAreDescribed) {
  const auto reduce = [](CrossDeviceOps& ops, int rank, ReduceOp op, DType dtype, std::size_t elements) {
    const PerReplica value = replicas(rank, 1, dtype, elements, 1);
    ops.reduce(op, value, Destination(value));
  };
  const auto f32 = DType::kFloat32;
  expect_mismatch([&](CrossDeviceOps& ops, int rank,
                      bool differs) { reduce(ops, rank, ReduceOp::kSum, f32, differs ? 99 : 100); },
                  {"invalid_argument", "call differently", "worker 1 (", "[99]", "[100]"});
  expect_mismatch(
      [&](CrossDeviceOps& ops, int rank, bool differs) {
        reduce(ops, rank, ReduceOp::kSum, differs ? DType::kInt32 : f32, 100);
      },
      {"invalid_argument", "call differently", "worker 1 (", "int32", "float32"});
  expect_mismatch(
      [&](CrossDeviceOps& ops, int rank, bool differs) {
        reduce(ops, rank, differs ? ReduceOp::kMean : ReduceOp::kSum, f32, 100);
      },
      {"invalid_argument", "call differently", "worker 1 (", "mean", "sum"});
}

// Sums of one replica a worker.
class Summing {
 public:
  Summing(int rank, const char* specs)
      : rank_(rank),
        ops_(worker_names(cluster_.size()), kDevices, AllReduceSpecs(specs), 0, 0, 10, cluster_) {}

  void operator()(std::size_t elements) {
    const PerReplica value = replicas(rank_, 1, DType::kFloat32, elements, 1);
    ops_.reduce(ReduceOp::kSum, value, Destination(value));
  }

 private:
  int rank_;
  Cluster cluster_ = Cluster::from_environment();
  MultiWorkerAllReduce ops_;
};

// Both calls were made before, by all: nobody describes them again.
TEST(FailureOfProcesses, CallsInAnotherOrderAreDescribed) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    Summing sum(rank, "direct");
    for (int i = 0; i < 3; ++i) {
      sum(10);
      sum(20);
    }
    sum(rank == 1 ? 20 : 10);
    sum(rank == 1 ? 10 : 20);
    return std::string("no error");
  });
  expect_same_verdict(ends, -1, {"invalid_argument", "call differently", "[10]", "[20]", "call 6"});
}

// What goes to all and what goes to one are announced in different places: two workers of four look for each.
TEST(FailureOfProcesses, HalvesInAnotherOrderAreDescribed) {
  const std::vector<WorkerEnd> ends = run_workers(4, [&](int rank) {
    Summing sum(rank, "exchange:4k:direct");
    for (int i = 0; i < 2; ++i) {
      sum(1000);
      sum(4000);
    }
    sum(rank < 2 ? 1000 : 4000);
    return std::string("no error");
  });
  expect_same_verdict(ends, -1, {"invalid_argument", "call differently", "[1000]", "[4000]"});
}

TEST(FailureOfProcesses, PoliciesThatDifferAreDescribed) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(3), kDevices, AllReduceSpecs(rank == 2 ? "rechd" : "direct"), 0, 0,
                             10, cluster);
    const PerReplica value = replicas(rank, 1, DType::kFloat32, 10, 1);
    ops.reduce(ReduceOp::kSum, value, Destination(value));
    return std::string("no error");
  });
  expect_same_verdict(ends, -1, {"call differently", "worker 2 (", "rechd#1", "direct#1"});
}

// Which results are in place is a worker's own affair, as long as its packs are those of the others.
TEST(FailureOfProcesses, InPlaceOnSomeWorkers) {
  for (const bool mixes : {false, true}) {
    const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
      const Cluster cluster = Cluster::from_environment();
      MultiWorkerAllReduce ops(worker_names(3), kDevices, AllReduceSpecs("auto"), 0, 0, 10, cluster);
      std::vector<PerReplica> values{replicas(rank, 1, DType::kFloat32, 100, 1),
                                     replicas(rank, 1, DType::kFloat32, 70, 2)};
      std::vector<PerReplica> results = values;
      if (rank == 0) results[0] = replicas(rank, 1, DType::kFloat32, 100, 9);
      if (rank == 0 && !mixes) results[1] = replicas(rank, 1, DType::kFloat32, 70, 9);
      ops.batch_reduce_into(ReduceOp::kSum, values, results);
      return digest(results[0]) + digest(results[1]);
    });
    for (const WorkerEnd& end : ends) {
      EXPECT_FALSE(end.text.starts_with("error")) << end.text;
      EXPECT_EQ(end.text, ends[0].text);
    }
  }
}

TEST(FailureOfProcesses, NewCallsSeeWhoHasLeft) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    Cluster cluster = Cluster::from_environment();
    if (rank == 2) {
      cluster.close();
      cluster.barrier();
    }
    cluster.barrier();
    return std::string("no error");
  });
  expect_same_verdict(ends, 2, {"error aborted: ", "worker 2 (", "closed the cluster"});
  EXPECT_EQ(ends[2].text, "error aborted: this worker has closed the cluster");
}

// A call that never had its turn leaves nobody knowing which call is which.
TEST(FailureOfProcesses, ACallGivenUpBeforeItsTurnEndsTheGroup) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(2), kDevices, AllReduceSpecs("direct"), 0, 0, 10, cluster);
    const PerReplica value = replicas(rank, 1, DType::kFloat32, 10, 1);
    ops.reduce(ReduceOp::kSum, value, Destination(value));
    if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const ValueDestination pair{value, value};
    Work first = ops.batch_reduce_async(ReduceOp::kSum, std::span(&pair, 1));
    CommunicationOptions hurried;
    hurried.timeout = std::chrono::milliseconds(rank == 0 ? 100 : 100000);
    Work second = ops.batch_reduce_async(ReduceOp::kSum, std::span(&pair, 1), hurried);
    first.wait();
    second.wait();
    return "no error";
  });
  expect_same_verdict(ends, -1, {"error deadline_exceeded: "});
}

TEST(FailureOfProcesses, ARefusalOfOneIsTold) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("direct"), 0, 0, 10,
                             cluster);
    const PerReplica value = replicas(rank == 2 ? 0 : rank, 1, DType::kFloat32, 10, 1);
    ops.reduce(ReduceOp::kSum, value, Destination(value));
    return std::string("no error");
  });
  expect_same_verdict(ends, -1, {"worker 2 (", "refused call 0", "a device of another worker"});
}

TEST(FailureOfProcesses, WhatAllRefuseEndsNothing) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("direct"), 0, 0, 10,
                             cluster);
    CommunicationOptions options;
    options.timeout = std::chrono::milliseconds(-1);
    std::vector<PerReplica> one{replicas(rank, 1, DType::kFloat32, 10, 1)};
    EXPECT_THROW(ops.batch_reduce_into(ReduceOp::kSum, one, one, options), Error);
    EXPECT_THROW(ops.batch_reduce_into(ReduceOp::kSum, one, {}), Error);
    EXPECT_TRUE(ops.batch_reduce(ReduceOp::kSum, {}).empty());
    const PerReplica bad = replicas((rank + 1) % 3, 1, DType::kFloat32, 10, 1);
    std::string text;
    try {
      ops.reduce(ReduceOp::kSum, bad, Destination(bad));
    } catch (const Error& error) {
      text = error.what();
    }
    const PerReplica good = replicas(rank, 1, DType::kFloat32, 10, 1);
    return text + digest(ops.reduce(ReduceOp::kSum, good, Destination(good)));
  });
  for (const WorkerEnd& end : ends) EXPECT_THAT(end.text, HasSubstr("a device of another worker"));
}

TEST(FailureOfProcesses, ResultsThatOverlapEverywhereEndNothing) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("direct"), 0, 0, 10,
                             cluster);
    std::vector<PerReplica> two{replicas(rank, 1, DType::kFloat32, 10, 1),
                                replicas(rank, 1, DType::kFloat32, 10, 2)};
    std::vector<PerReplica> crossed{two[1], two[0]};
    std::string text;
    try {
      ops.batch_reduce_into(ReduceOp::kSum, two, crossed);
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_THROW(ops.prepare(ReduceOp::kSum, two, crossed), Error);
    ops.batch_reduce_into(ReduceOp::kSum, two, two);
    return text;
  });
  for (const WorkerEnd& end : ends) EXPECT_THAT(end.text, HasSubstr("share memory"));
}

TEST(FailureOfProcesses, AWorkerThatNeverComesIsNamed) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(cluster.size()), kDevices, AllReduceSpecs("direct"), 0, 0, 10,
                             cluster);
    const PerReplica value = replicas(rank, 1, DType::kFloat32, 10, 1);
    CommunicationOptions options;
    for (int i = 0; i < 2; ++i) {
      ops.reduce(ReduceOp::kSum, value, Destination(value), options);
      options.timeout = std::chrono::milliseconds(300);
      if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
    }
    return std::string("no error");
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(ends[static_cast<std::size_t>(rank)].text, StartsWith("error deadline_exceeded: "));
  }
  EXPECT_EQ(ends[0].text, ends[2].text);
  EXPECT_THAT(ends[0].text, HasSubstr("which waited for worker 1 ("));
  EXPECT_THAT(ends[1].text, StartsWith("error deadline_exceeded: "));
}

}  // namespace
}  // namespace onesum::testing
