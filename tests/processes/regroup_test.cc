// Clusters made from clusters: going on after a failure, twice the same, and some of the workers.
#include <algorithm>
#include <csignal>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> names_of(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& worker : cluster.workers()) names.push_back(worker.to_string());
  return names;
}

// The replicas of worker `task`, which stay its own whatever its rank is now.
PerReplica value_of(int task, std::uint64_t seed) { return replicas(task, 1, DType::kFloat32, 3000, seed); }

std::string sum_over(const Cluster& cluster, int task, std::uint64_t seed, const char* spec = "direct") {
  MultiWorkerAllReduce ops(names_of(cluster), kDevices, AllReduceSpecs(spec), 0, 0, 10, cluster);
  const PerReplica value = value_of(task, seed);
  return digest_of_worker(ops.reduce(ReduceOp::kSum, value, Destination(value)), task);
}

// What each of these workers should get, computed in one process.
std::vector<std::string> expected_sums(const std::vector<int>& tasks, std::uint64_t seed) {
  std::vector<std::string> names;
  std::vector<Value> components;
  for (const int task : tasks) {
    names.push_back(worker_names(task + 1).back());
    const PerReplica value = value_of(task, seed);
    components.insert(components.end(), value.values().begin(), value.values().end());
  }
  const Cluster cluster = Cluster::embedded(names, kDevices);
  MultiWorkerAllReduce ops(names, kDevices, AllReduceSpecs("direct"), 0, 0, 10, cluster);
  const PerReplica value(components);
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, Destination(value));
  std::vector<std::string> digests;
  for (const int task : tasks) digests.push_back(digest_of_worker(sum, task));
  return digests;
}

// "2 of 3: DIGEST" for each of those who went on.
void expect_sums(const std::vector<WorkerEnd>& ends, const std::vector<int>& tasks, std::uint64_t seed) {
  std::string all;
  const std::string expected = run_alone([&] {
    std::string text;
    for (const std::string& digest : expected_sums(tasks, seed)) text.append(digest).append("\n");
    return text;
  });
  std::string found;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string& text = ends[static_cast<std::size_t>(tasks[i])].text;
    const std::string place = fmt::format("{} of {}: ", i, tasks.size());
    EXPECT_THAT(text, StartsWith(place)) << "worker " << tasks[i];
    found.append(text.substr(std::min(place.size(), text.size()))).append("\n");
  }
  EXPECT_EQ(found, expected);
}

std::string place_and_sum(const Cluster& cluster, int task, std::uint64_t seed) {
  return fmt::format("{} of {}: {}", cluster.rank(), cluster.size(), sum_over(cluster, task, seed));
}

// Calls until something happens; returns what.
std::string call_until_failure(const Cluster& cluster, int task,
                               const std::function<void(int)>& before_call) {
  try {
    for (int call = 0;; ++call) {
      before_call(call);
      sum_over(cluster, task, static_cast<std::uint64_t>(call), "rechd");
    }
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<int> without(int size, const std::vector<int>& dead) {
  std::vector<int> left;
  for (int r = 0; r < size; ++r) {
    if (std::ranges::find(dead, r) == dead.end()) left.push_back(r);
  }
  return left;
}

class Regroup : public ::testing::TestWithParam<const char*> {
 protected:
  Environment environment() const { return {{"ONESUM_TRANSPORT", GetParam()}}; }
};

INSTANTIATE_TEST_SUITE_P(Over, Regroup, ::testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(Regroup, SurvivorsGoOn) {
  for (const std::vector<int>& dead : {std::vector<int>{0}, {3}, {0, 1}, {0, 2, 3}}) {
    const std::vector<WorkerEnd> ends = run_workers(
        4,
        [&](int rank) {
          Cluster cluster = Cluster::from_environment();
          call_until_failure(cluster, rank, [&](int call) {
            if (rank == dead.front() && call == 5) ::kill(::getpid(), SIGKILL);
          });
          if (std::ranges::find(dead, rank) != dead.end()) ::kill(::getpid(), SIGKILL);
          return place_and_sum(cluster.shrink(), rank, 99);
        },
        environment());
    for (const int rank : dead) EXPECT_EQ(ends[static_cast<std::size_t>(rank)].signal, SIGKILL);
    expect_sums(ends, without(4, dead), 99);
  }
}

// Whoever leads may die while all agree, and so may the next one.
TEST_P(Regroup, LeadersDieWhileShrinking) {
  for (const int patience : {0, 1, 3}) {  // milliseconds, so that it happens at different moments
    const std::vector<WorkerEnd> ends = run_workers(
        5,
        [&](int rank) {
          Cluster cluster = Cluster::from_environment();
          call_until_failure(cluster, rank, [&](int call) {
            if (rank == 3 && call == 3) ::kill(::getpid(), SIGKILL);
          });
          std::thread killer;
          if (rank < 2) {
            killer = std::thread([=] {
              std::this_thread::sleep_for(std::chrono::milliseconds(patience * (rank + 1)));
              ::kill(::getpid(), SIGKILL);
            });
          }
          Cluster shrunk = cluster.shrink();
          if (rank < 2) ::pause();
          while (shrunk.size() > 2) {
            call_until_failure(shrunk, rank, [](int) {});
            shrunk = shrunk.shrink();
          }
          return place_and_sum(shrunk, rank, 7);
        },
        environment());
    expect_sums(ends, {2, 4}, 7);
  }
}

TEST_P(Regroup, OneAfterTheOtherUntilOneIsLeft) {
  const std::vector<WorkerEnd> ends = run_workers(
      4,
      [&](int rank) {
        Cluster cluster = Cluster::from_environment();
        for (const int dead : {2, 0, 3}) {
          call_until_failure(cluster, rank, [&](int call) {
            if (rank == dead && call == 2) ::_exit(3);
          });
          cluster = cluster.shrink();
        }
        return place_and_sum(cluster, rank, 5);
      },
      environment());
  expect_sums(ends, {1}, 5);
}

TEST_P(Regroup, NobodyFailed) {
  const std::vector<WorkerEnd> ends = run_workers(
      3,
      [&](int rank) {
        Cluster cluster = Cluster::from_environment();
        sum_over(cluster, rank, 1);
        sum_over(cluster, rank, 2);
        EXPECT_EQ(cluster.completed_calls(), 2U);
        cluster.barrier();
        Cluster shrunk = cluster.shrink();
        EXPECT_EQ(shrunk.completed_by_all(), 3U);
        EXPECT_EQ(shrunk.completed_calls(), 0U);
        EXPECT_THROW(cluster.barrier(), Error);
        EXPECT_THROW(cluster.shrink(), Error);
        cluster = shrunk;  // the old one goes
        shrunk.barrier();
        return place_and_sum(shrunk, rank, 4);
      },
      environment());
  expect_sums(ends, {0, 1, 2}, 4);
}

TEST_P(Regroup, AfterCallsThatDiffered) {
  const std::vector<WorkerEnd> ends = run_workers(
      3,
      [&](int rank) -> std::string {
        Cluster cluster = Cluster::from_environment();
        sum_over(cluster, rank, 1);
        try {
          sum_over(cluster, rank, 1, rank == 1 ? "rechd" : "direct#2");
          return "no error";
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kInvalidArgument) return error.what();
        }
        const Cluster shrunk = cluster.shrink();
        EXPECT_EQ(shrunk.completed_by_all(), 1U);
        return place_and_sum(shrunk, rank, 4);
      },
      environment());
  expect_sums(ends, {0, 1, 2}, 4);
}

TEST(RegroupProcesses, WhoHasClosedIsLeftOut) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    if (rank == 0) {
      cluster.close();
      cluster.shrink();
      return "it was let in";
    }
    return place_and_sum(cluster.shrink(), rank, 4);
  });
  EXPECT_EQ(ends[0].text, "error aborted: this worker has closed the cluster");
  expect_sums(ends, {1, 2}, 4);
}

// One that was given up for dead and wakes is not let in again, and changes nothing.
TEST(RegroupProcesses, AStoppedWorkerIsExpelled) {
  Workers workers(3,
                  [&](int rank) {
                    Cluster cluster = Cluster::from_environment();
                    const std::string verdict = call_until_failure(cluster, rank, [&](int call) {
                      if (rank == 1 && call == 5) ::kill(::getpid(), SIGSTOP);
                    });
                    if (rank == 1) {
                      EXPECT_THAT(verdict, HasSubstr("nothing was heard of it for 2000 ms"));
                      try {
                        cluster.shrink();
                        return std::string("it was let in");
                      } catch (const Error& error) {
                        return fmt::format("error {}: {}", to_string(error.code()), error.what());
                      }
                    }
                    EXPECT_THAT(verdict, HasSubstr("worker 1 ("));
                    const Cluster shrunk = cluster.shrink();
                    for (std::uint64_t i = 0; i < 100; ++i) {
                      sum_over(shrunk, rank, i);
                      std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    }
                    return place_and_sum(shrunk, rank, 4);
                  },
                  {{"ONESUM_PROGRESS_TIMEOUT", "2"}});
  std::thread waker([process = workers.process(1)] {
    std::this_thread::sleep_for(std::chrono::seconds(6));
    ::kill(process, SIGCONT);
  });
  const std::vector<WorkerEnd> ends = workers.wait();
  waker.join();
  expect_sums(ends, {0, 2}, 4);
  EXPECT_THAT(ends[1].text, StartsWith("error aborted: expelled: "));
}

// Worker 0 may live: one of two without the lowest rank must not go on. Worker 0 may.
TEST(RegroupProcesses, AMinorityIsTold) {
  Workers workers(2,
                  [&](int rank) -> std::string {
                    Cluster cluster = Cluster::from_environment();
                    call_until_failure(cluster, rank, [&](int call) {
                      if (rank == 0 && call == 5) ::kill(::getpid(), SIGSTOP);
                    });
                    return place_and_sum(cluster.shrink(), rank, 3);
                  },
                  {{"ONESUM_PROGRESS_TIMEOUT", "2"}});
  std::thread waker([process = workers.process(0)] {
    std::this_thread::sleep_for(std::chrono::seconds(6));
    ::kill(process, SIGCONT);
  });
  const std::vector<WorkerEnd> ends = workers.wait();
  waker.join();
  EXPECT_THAT(ends[1].text, StartsWith("error unavailable: cut off from worker 0 ("));
  expect_sums(ends, {0}, 3);
}

TEST(RegroupProcesses, WhoDoesNotComeIsNamedAndLeftBehind) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    cluster.barrier();
    if (rank == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
    return place_and_sum(cluster.shrink(std::chrono::milliseconds(rank == 2 ? 60000 : 1000)), rank, 4);
  });
  expect_sums(ends, {0, 1}, 4);
  EXPECT_THAT(ends[2].text,
              StartsWith("error aborted: expelled: the group goes on without this worker: worker 0 ("));
}

// Also the one who would lead.
TEST(RegroupProcesses, TheLowestRankMayBeLeftBehind) {
  const std::vector<WorkerEnd> ends = run_workers(4, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    cluster.barrier();
    if (rank == 3) ::kill(::getpid(), SIGKILL);
    if (rank == 0) std::this_thread::sleep_for(std::chrono::seconds(4));
    return place_and_sum(cluster.shrink(std::chrono::milliseconds(rank == 0 ? 60000 : 1000)), rank, 4);
  });
  expect_sums(ends, {1, 2}, 4);
  EXPECT_THAT(ends[0].text, StartsWith("error aborted: expelled: "));
}

// Who was left behind has other clusters with the same workers.
TEST(RegroupProcesses, LeavingOneClusterIsNoneOfAnothersBusiness) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    Cluster other = cluster.duplicate();
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::seconds(4));
      EXPECT_THROW(cluster.shrink(), Error);
      cluster.close();
    } else {
      cluster.shrink(std::chrono::milliseconds(500)).barrier();
    }
    other.barrier();
    return place_and_sum(other, rank, 4);
  });
  expect_sums(ends, {0, 1, 2}, 4);
}

TEST(RegroupProcesses, ClosingEndsAShrinkUnderWay) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    cluster.barrier();
    if (rank == 1) {  // never shrinks
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return "left";
    }
    std::thread closer([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      cluster.close();
    });
    std::string text = "went on";
    try {
      cluster.shrink(std::chrono::milliseconds::max());
    } catch (const Error& error) {
      text = error.what();
    }
    closer.join();
    return text;
  });
  EXPECT_EQ(ends[0].text, "this worker has closed the cluster");
}

TEST(RegroupProcesses, TooFewComeInTime) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    cluster.barrier();
    if (rank != 0) {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return place_and_sum(cluster.shrink(), rank, 4);
    }
    try {
      cluster.shrink(std::chrono::milliseconds(100));
      return "went on";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("shrink waited in vain for worker 1 ("));
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    }
    return place_and_sum(cluster.shrink(), rank, 4);  // a second time, until all have come
  });
  expect_sums(ends, {0, 1, 2}, 4);
}

// Two sequences of calls at the same time, in different orders.
TEST_P(Regroup, DuplicatesAreIndependent) {
  const std::vector<WorkerEnd> ends = run_workers(
      3,
      [&](int rank) {
        Cluster cluster = Cluster::from_environment();
        Cluster other = cluster.duplicate();
        std::string text;
        const auto call = [&] {
          for (std::uint64_t i = 0; i < 50; ++i) text = sum_over(other, rank, i);
        };
        if (rank == 1) call();
        std::thread thread;
        if (rank != 1) thread = std::thread(call);
        for (std::uint64_t i = 0; i < 20; ++i) sum_over(cluster, rank, i);
        if (rank != 1) thread.join();
        cluster.close();
        return text + " " + place_and_sum(other, rank, 3);
      },
      environment());
  for (const WorkerEnd& end : ends) EXPECT_THAT(end.text, HasSubstr(" of 3: ")) << end.text;
}

TEST_P(Regroup, SplitInGroups) {
  const std::vector<WorkerEnd> ends = run_workers(
      5,
      [&](int rank) {
        Cluster cluster = Cluster::from_environment();
        const std::vector<std::vector<int>> groups{{0, 2}, {3, 1}, {4}};
        const auto mine = std::ranges::find_if(
            groups, [&](const auto& group) { return std::ranges::find(group, rank) != group.end(); });
        Cluster part = cluster.split(*mine);
        sum_over(cluster, rank, 2);  // the whole is still there
        part.barrier();
        return place_and_sum(part, rank, 6);
      },
      environment());
  expect_sums(ends, {0, 2}, 6);
  expect_sums(ends, {3, 1}, 6);
  expect_sums(ends, {4}, 6);
}

// The whole fails with one of its workers; a part without it does not.
TEST_P(Regroup, APartOutlivesTheWhole) {
  const std::vector<WorkerEnd> ends = run_workers(
      3,
      [&](int rank) {
        Cluster cluster = Cluster::from_environment();
        const std::vector<int> ranks = rank == 2 ? std::vector<int>{2} : std::vector<int>{0, 1};
        Cluster part = cluster.split(ranks);
        if (rank == 2) ::kill(::getpid(), SIGKILL);
        EXPECT_THROW(cluster.barrier(), Error);
        return place_and_sum(part, rank, 6);
      },
      environment());
  expect_sums(ends, {0, 1}, 6);
}

TEST(RegroupProcesses, GroupsThatDifferAreRefused) {
  const std::vector<WorkerEnd> ends = run_workers(3, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    cluster.split(rank == 1 ? std::vector<int>{1, 2} : std::vector<int>{0, 1, 2});
    return "no error";
  });
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text, StartsWith("error invalid_argument: workers call differently: "));
    EXPECT_THAT(end.text, HasSubstr("split {1, 2}"));
    EXPECT_EQ(end.text, ends[0].text);
  }
}

TEST(RegroupProcesses, RanksThatMakeNoSenseAreRefused) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    for (const std::vector<int>& ranks :
         {std::vector<int>{}, {rank, rank}, {1 - rank}, {rank, 2}, {rank, -1}}) {
      EXPECT_THROW(cluster.split(ranks), Error);  // by all: nothing has ended
    }
    return place_and_sum(cluster, rank, 6);
  });
  expect_sums(ends, {0, 1}, 6);
}

// A barrier is not a duplicate.
TEST(RegroupProcesses, OtherCallsAreDescribed) {
  const std::vector<WorkerEnd> ends = run_workers(2, [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    if (rank == 0) {
      cluster.barrier();
    } else {
      cluster.duplicate();
    }
    return "no error";
  });
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text, StartsWith("error invalid_argument: workers call differently: "));
    EXPECT_THAT(end.text, HasSubstr("calls duplicate"));
    EXPECT_THAT(end.text, HasSubstr("calls barrier"));
  }
}

}  // namespace
}  // namespace onesum::testing
