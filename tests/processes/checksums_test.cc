// Messages that change on their way over the network.
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWorkers = 3;

// Of whole numbers, in which no bit is rounded away.
std::string sums(const Cluster& cluster, int own) {
  MultiWorkerAllReduce ops(worker_names(kWorkers), kDevices, AllReduceSpecs("direct"), 0, 0, 10, cluster);
  std::string text = "sums";
  for (std::uint64_t call = 0; call < 4; ++call) {
    const PerReplica value = replicas(own < 0 ? 0 : own, own < 0 ? kWorkers : 1, DType::kInt32, 1009, call);
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, Destination(value));
    text.append(" ").append(digest_of_worker(result, own < 0 ? 0 : own));
  }
  return text;
}

Environment with_checksums(const std::string& value) {
  return {
      {"ONESUM_TRANSPORT", "tcp"}, {"ONESUM_FAULT", "rank=1,beat=2,do=corrupt"}, {"ONESUM_CHECKSUMS", value}};
}

std::vector<WorkerEnd> sums_with(const Environment& environment) {
  return run_workers(kWorkers, [](int rank) { return sums(Cluster::from_environment(), rank); }, environment);
}

TEST(ChecksumsOfProcesses, AChangedMessageEndsTheCallForAll) {
  const std::vector<WorkerEnd> ends = sums_with(with_checksums("on"));
  for (const WorkerEnd& end : ends) {
    EXPECT_EQ(end.text, ends.front().text);
    EXPECT_THAT(end.text, AllOf(StartsWith("error aborted: a message of worker 1 ("),
                                HasSubstr("was changed on its way: its checksum is wrong")));
  }
}

// What they are for.
TEST(ChecksumsOfProcesses, WithoutThemTheSumIsWrong) {
  const std::string right =
      run_alone([] { return sums(Cluster::embedded(worker_names(kWorkers), kDevices), -1); });
  int wrong = 0;
  for (const WorkerEnd& end : sums_with(with_checksums("off"))) {
    EXPECT_THAT(end.text, StartsWith("sums "));
    if (end.text != right) ++wrong;
  }
  EXPECT_GT(wrong, 0);
}

TEST(ChecksumsOfProcesses, NothingIsFoundWhereNothingChanges) {
  const std::string right =
      run_alone([] { return sums(Cluster::embedded(worker_names(kWorkers), kDevices), -1); });
  for (const WorkerEnd& end : sums_with({{"ONESUM_TRANSPORT", "tcp"}, {"ONESUM_CHECKSUMS", "on"}})) {
    EXPECT_EQ(end.text, right);
  }
}

TEST(ChecksumsOfProcesses, WorkersMustAgree) {
  const std::vector<WorkerEnd> ends = run_workers(kWorkers, [](int rank) {
    ::setenv("ONESUM_CHECKSUMS", rank == 1 ? "on" : "off", 1);
    return std::to_string(Cluster::from_environment().size());
  });
  for (const WorkerEnd& end : ends) {
    EXPECT_THAT(end.text, AllOf(StartsWith("error invalid_argument: "),
                                HasSubstr("rank 1 has ONESUM_CHECKSUMS=on, rank 0 has off")));
  }
}

}  // namespace
}  // namespace onesum::testing
