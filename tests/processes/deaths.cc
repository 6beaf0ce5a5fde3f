#include "deaths.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kSize = 4;
constexpr int kCalls = 3;
// A stopped worker is given up after so much silence. Others must not be: the machine may be busy.
constexpr const char* kSilence = "3";

using Time = std::chrono::duration<double, std::milli>;

double now_in_milliseconds() { return Time(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string sum(const Cluster& cluster, const std::string& spec, int task, int call) {
  std::vector<std::string> names;
  for (const Device& worker : cluster.workers()) names.push_back(worker.to_string());
  MultiWorkerAllReduce ops(names, kDevices, AllReduceSpecs(spec), 0, 0, 10, cluster);
  // The same objects would be the same call; other values show whether an old message was taken for a new
  // one.
  const PerReplica value = replicas(task, 1, DType::kFloat32, 1021, static_cast<std::uint64_t>(call));
  return digest(ops.reduce(ReduceOp::kSum, value, Destination(value)));
}

// What a worker says at its end.
struct Testimony {
  std::vector<std::string> sums;  // of the calls that it completed
  std::string verdict;            // empty: nothing happened
  double verdict_at = 0;          // milliseconds
  std::string place;              // "0 of 3", after shrinking; or why not
  std::string sum_after;
  bool is_missing = false;  // it died, or exited without a word
};

std::string to_text(const Testimony& said) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n", said.verdict, said.verdict_at, said.place, said.sum_after);
  for (const std::string& sum : said.sums) text.append(sum).append("\n");
  return text;
}

Testimony from_text(const std::string& text) {
  std::istringstream in(text);
  Testimony said;
  said.is_missing = text.empty();
  std::string at;
  std::getline(in, said.verdict);
  std::getline(in, at);
  std::getline(in, said.place);
  std::getline(in, said.sum_after);
  said.verdict_at = at.empty() ? 0 : std::strtod(at.c_str(), nullptr);
  for (std::string sum; std::getline(in, sum);) said.sums.push_back(sum);
  return said;
}

// With ops of its own for all calls: later ones are known.
Testimony work(const Death& death, int rank) {
  Testimony said;
  Cluster cluster = Cluster::from_environment();
  try {
    MultiWorkerAllReduce ops(worker_names(kSize), kDevices, AllReduceSpecs(death.spec), 0, 0, 10, cluster);
    for (int call = 0; call < kCalls; ++call) {
      const PerReplica value = replicas(rank, 1, DType::kFloat32, 1021, static_cast<std::uint64_t>(call));
      said.sums.push_back(digest(ops.reduce(ReduceOp::kSum, value, Destination(value))));
    }
    cluster.barrier();
    return said;
  } catch (const Error& error) {
    said.verdict_at = now_in_milliseconds();
    said.verdict = fmt::format("{}: {}", to_string(error.code()), error.what());
  }
  try {
    const Cluster shrunk = cluster.shrink();
    said.place = fmt::format("{} of {}", shrunk.rank(), shrunk.size());
    said.sum_after = sum(shrunk, death.spec, rank, kCalls);
  } catch (const Error& error) {
    said.place = fmt::format("{}: {}", to_string(error.code()), error.what());
  }
  return said;
}

// What all calls should give, from workers in one process: by rank, the calls of all four, then that of those
// who are left. Kept, because a process is started for it.
using Sums = std::map<int, std::vector<std::string>>;

Sums compute(const std::string& spec, const std::vector<int>& survivors) {
  const std::string text = run_alone([&] {
    std::string all;
    for (int call = 0; call <= kCalls; ++call) {
      std::vector<int> tasks{0, 1, 2, 3};
      if (call == kCalls) tasks = survivors;
      std::vector<std::string> names;
      std::vector<Value> components;
      for (const int task : tasks) {
        names.push_back(worker_names(task + 1).back());
        const PerReplica value = replicas(task, 1, DType::kFloat32, 1021, static_cast<std::uint64_t>(call));
        components.insert(components.end(), value.values().begin(), value.values().end());
      }
      MultiWorkerAllReduce ops(names, kDevices, AllReduceSpecs(spec), 0, 0, 10,
                               Cluster::embedded(names, kDevices));
      const PerReplica value(components);
      const Mirrored result = ops.reduce(ReduceOp::kSum, value, Destination(value));
      for (const int task : tasks) all += fmt::format("{} {}\n", task, digest_of_worker(result, task));
    }
    return all;
  });
  Sums sums;
  std::istringstream in(text);
  int task = 0;
  for (std::string digest; in >> task >> digest;) sums[task].push_back(digest);
  return sums;
}

const Sums& expected_sums(const std::string& spec, const std::vector<int>& survivors) {
  static std::map<std::pair<std::string, std::vector<int>>, Sums> known;
  Sums& sums = known[{spec, survivors}];
  if (sums.empty()) sums = compute(spec, survivors);
  return sums;
}

void expect_right_sums(const Testimony& said, const std::vector<std::string>& expected) {
  ASSERT_LE(said.sums.size(), static_cast<std::size_t>(kCalls));
  for (std::size_t call = 0; call < said.sums.size(); ++call) {
    EXPECT_EQ(said.sums[call], expected[call]) << "call " << call;
  }
}

std::string fault_of(const Death& death) {
  const std::string place = fmt::format("beat={},op={},do={}", death.call, death.operation, death.how);
  std::string fault = fmt::format("rank={},{}", death.rank, place);
  if (death.also) fault += fmt::format(";rank={},{}", *death.also, place);
  return fault;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

std::string describe(const std::string& what, const std::vector<double>& values) {
  if (values.empty()) return {};
  return fmt::format("from {} to the verdict: median {:.1f} ms, worst {:.1f} ms, of {}\n", what,
                     median(values), std::ranges::max(values), values.size());
}

// All of them; one that was stopped is woken when the others have finished. `died_at`: when the kernel said
// that `rank` has ended, which may be after it closed the connections, or has stopped.
std::map<int, Testimony> await(Workers& workers, int rank, double& died_at) {
  std::thread watcher([&died_at, process = workers.process(rank)] {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WSTOPPED | WNOWAIT);
    died_at = now_in_milliseconds();
  });
  std::map<int, Testimony> said;
  for (int r = 0; r < kSize; ++r) {
    if (r != rank) said[r] = from_text(workers.wait_for(r).text);
  }
  ::kill(workers.process(rank), SIGCONT);
  watcher.join();
  said[rank] = from_text(workers.wait_for(rank).text);
  return said;
}

}  // namespace

std::string to_string(const Death& death) {
  return fmt::format("{} over {}: {}", death.spec, death.transport, fault_of(death));
}

bool DeathWatch::see(const Death& death) {
  SCOPED_TRACE(to_string(death));
  Workers workers(kSize, [&](int rank) { return to_text(work(death, rank)); },
                  {{"ONESUM_TRANSPORT", death.transport},
                   {"ONESUM_FAULT", fault_of(death)},
                   {"ONESUM_PROGRESS_TIMEOUT", death.how == "stop" ? kSilence : "60"}});
  double died_at = 0;
  const std::map<int, Testimony> said = await(workers, death.rank, died_at);

  const bool was_stopped = death.how == "stop";
  std::vector<int> survivors;
  for (const auto& [rank, testimony] : said) {
    if (!testimony.is_missing && !(was_stopped && rank == death.rank)) survivors.push_back(rank);
  }
  const Testimony& first = said.at(survivors.front());
  const bool happened = !first.verdict.empty();
  const Sums& expected = expected_sums(death.spec, survivors);
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    SCOPED_TRACE(fmt::format("worker {}", survivors[i]));
    const Testimony& mine = said.at(survivors[i]);
    const std::vector<std::string>& sums = expected.at(survivors[i]);
    EXPECT_EQ(mine.verdict, first.verdict);
    expect_right_sums(mine, sums);
    if (!happened) {
      EXPECT_EQ(mine.sums.size(), static_cast<std::size_t>(kCalls));
      continue;
    }
    EXPECT_THAT(mine.verdict,
                AnyOf(StartsWith(fmt::format("aborted: worker {} (", death.rank)),
                      StartsWith(fmt::format("aborted: worker {} (", death.also.value_or(-1)))));
    if (death.transport == "shm" && !death.also) {  // its recorder can be read
      EXPECT_THAT(mine.verdict, HasSubstr(fmt::format("; it was last seen in call {} (", death.call)));
    }
    EXPECT_EQ(mine.place, fmt::format("{} of {}", i, survivors.size()));
    EXPECT_EQ(mine.sum_after, sums.back());
    (was_stopped ? stopped_milliseconds_ : milliseconds_).push_back(std::max(0.0, mine.verdict_at - died_at));
  }
  if (happened && was_stopped) {
    expect_right_sums(said.at(death.rank), expected_sums(death.spec, {0, 1, 2, 3}).at(death.rank));
    // All that it waited for may have come before it was given up.
    const Testimony& woken = said.at(death.rank);
    if (!woken.verdict.empty()) {
      EXPECT_THAT(woken.place, StartsWith("aborted: expelled: "));
    }
  }
  return happened;
}

std::string DeathWatch::figures() const {
  return describe("a death", milliseconds_) + describe("a stop", stopped_milliseconds_);
}

}  // namespace onesum::testing
