// Workers on several machines: shared memory inside of each, UCX between them.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machines/on_machines.h"
#include "processes/calls.h"
#include "processes/shared_count.h"
#include "processes/workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Environment with(const std::string& name, const std::string& value) {
  Environment environment = meeting();
  environment[name] = value;
  return environment;
}

// What is written to standard error while the function runs.
std::string heard_from(const std::function<void()>& function) {
  const int file = ::memfd_create("stderr", 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(file, STDERR_FILENO);
  function();
  ::dup2(before, STDERR_FILENO);
  std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), ' ');
  if (::pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text = "unreadable";
  return text;
}

TEST_F(MachinesTest, ResultsHaveTheSameBitsAsInOneProcess) {
  const TwoMachines machines;
  constexpr int kPerMachine = 2;
  const auto results = [](const Cluster& cluster, int own) {
    std::vector<std::string> all(static_cast<std::size_t>(cluster.size()));
    for (const std::string spec : {"auto", "xring", "rechd", "direct", "nccl/rechd", "pscpu/pscpu#2"}) {
      const std::vector<std::string> texts = results_of(cluster, own, spec);
      for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].append(texts[rank]).append(" ");
    }
    return all;
  };
  const std::vector<WorkerEnd> ends = run_on(machines, kPerMachine, [&](int rank) {
    return results(Cluster::from_environment(), rank)[static_cast<std::size_t>(rank)];
  });
  EXPECT_EQ(texts_of(ends),
            embedded(kPerMachine * kMachines, [&](const Cluster& cluster) { return results(cluster, -1); }));
}

TEST_F(MachinesTest, SharedMemoryInsideOfAMachineAndTcpBetween) {
  const TwoMachines machines;
  const std::vector<WorkerEnd> ends = run_on(
      machines, 2, [&](int) { return heard_from([] { Cluster::from_environment().barrier(); }); },
      with("ONESUM_LOG", "info"));
  const std::vector<std::string> routes = {
      "rank 0 reaches 1 through shared memory, and 2, 3 through TCP at 10.77.0.1",
      "rank 1 reaches 0 through shared memory, and 2, 3 through TCP at 10.77.0.1",
      "rank 2 reaches 3 through shared memory, and 0, 1 through TCP at 10.77.0.2",
      "rank 3 reaches 2 through shared memory, and 0, 1 through TCP at 10.77.0.2"};
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_THAT(ends[rank].text, HasSubstr(routes[rank]));
  }
}

TEST_F(MachinesTest, TheyAreNamedByTfConfig) {
  const TwoMachines machines;
  const std::vector<WorkerEnd> ends = run_on(
      machines, 1,
      [&](int rank) {
        for (const char* name : {"ONESUM_RANK", "ONESUM_SIZE", "ONESUM_JOB"}) ::unsetenv(name);
        const std::string hosts = "\"" + meeting_place() + "\",\"" + TwoMachines::address_of(1) + ":1\"";
        const std::string config = "{\"cluster\":{\"worker\":[" + hosts +
                                   "]},\"task\":{\"type\":\"worker\",\"index\":" + std::to_string(rank) +
                                   "}}";
        ::setenv("TF_CONFIG", config.c_str(), 1);
        return results_of(Cluster::from_environment(), rank, "auto")[static_cast<std::size_t>(rank)];
      },
      {{"ONESUM_SECRET", "known on both machines, and nowhere else"}});
  EXPECT_EQ(texts_of(ends),
            embedded(kMachines, [](const Cluster& cluster) { return results_of(cluster, -1, "auto"); }));
}

TEST_F(MachinesTest, WithoutASecretNobodyMeets) {
  const TwoMachines machines;
  const std::vector<WorkerEnd> ends =
      run_on(machines, 1, [](int) { return std::to_string(Cluster::from_environment().size()); },
             {{"ONESUM_ADDRESS", meeting_place()}, {"ONESUM_JOIN_TIMEOUT", "20"}});
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text, AllOf(StartsWith("error invalid_argument: "), HasSubstr("ONESUM_SECRET")));
  }
}

TEST_F(MachinesTest, ACutCableEndsACallOnBothSides) {
  const TwoMachines machines;
  constexpr std::size_t kElements = 1 << 20;
  const std::string expected = run_alone(
      [] { return LargeSum(Cluster::embedded(worker_names(4), kDevices), -1, kElements)().front(); });
  const SharedCount calls;
  Workers workers = start_on(
      machines, 2,
      [&](int rank) -> std::string {
        LargeSum large_sum(Cluster::from_environment(), rank, kElements);
        for (;;) {
          const std::string sum = large_sum()[static_cast<std::size_t>(rank)];
          if (sum != expected) return "wrong: " + sum;
          calls.add_one();
        }
      },
      with("ONESUM_PROGRESS_TIMEOUT", "2"));
  EXPECT_TRUE(calls.comes_to(6));
  machines.cut();
  const std::vector<WorkerEnd> ends = workers.wait();
  EXPECT_EQ(ends[0].text, ends[1].text);
  EXPECT_EQ(ends[2].text, ends[3].text);
  EXPECT_THAT(ends[0].text, AllOf(StartsWith("error aborted: "), HasSubstr("nothing was heard of it"),
                                  AnyOf(HasSubstr("worker 2 ("), HasSubstr("worker 3 ("))));
  EXPECT_THAT(ends[2].text, AllOf(StartsWith("error aborted: "), HasSubstr("nothing was heard of it"),
                                  AnyOf(HasSubstr("worker 0 ("), HasSubstr("worker 1 ("))));
}

}  // namespace
}  // namespace onesum::testing
