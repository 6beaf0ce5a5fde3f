// Calls of all kinds one after the other: what one shares with all of a machine, the next with some of it, or
// with nobody, lies in the same memory. Workers are late by turns.
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function_calls.h"
#include "sides.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 4;
constexpr int kCalls = 80;
// For copies of 8 KiB: most calls take several rounds.
constexpr const char* kLittleRoom = "2M";

class Caller {
 public:
  Caller(const Side& side, std::uint64_t seed) : side_(side), random_(seed) {
    for (const char* spec :
         {"auto", "exchange", "doubling", "direct", "pool", "nccl/rechd", "xring", "hierarchical_copy"})
      sums_.emplace_back(new MultiWorkerAllReduce(side.ops(spec)));
  }

  // The results of this side's workers, by worker.
  std::string results() {
    std::map<int, std::string> texts;
    for (int call = 0; call < kCalls; ++call) {
      const Mirrored result = next();
      if (below(4) == 0) dawdle(static_cast<int>(below(kWorkers)));
      for (int rank = side_.first(); rank < side_.first() + side_.count(); ++rank)
        texts[rank].append(" ").append(digest_of_worker(result, rank));
    }
    std::string text;
    for (const auto& [rank, own] : texts) text += std::to_string(rank) + own + "\n";
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void dawdle(int rank) const {
    if (side_.own == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  Mirrored next() {
    static constexpr std::size_t kElements[] = {0, 5, 300, 3000, 40000};
    const std::size_t elements = kElements[below(std::size(kElements))];
    const std::uint64_t seed = below(1000);
    const auto value = [&] { return side_.values(DType::kFloat32, elements, seed); };
    switch (below(6)) {
      case 0:
        return to_one_.reduce(ReduceOp::kSum, value(), own_device(static_cast<int>(below(kWorkers)), 0));
      case 1:
        return to_one_.reduce(ReduceOp::kMean, value(), "CPU:1");
      case 2: {
        const PerReplica rows = value();
        return sums_.front()->gather(rows, Destination(rows), 0);
      }
      case 3: {
        const PerReplica numbers = uneven_ints(side_, static_cast<std::int64_t>(elements));
        return by_function_.reduce(ReduceOp::kSum, numbers, Destination(numbers));
      }
      default: {
        const PerReplica summed = value();
        return sums_[below(sums_.size())]->reduce(ReduceOp::kMean, summed, Destination(summed));
      }
    }
  }

  const Side& side_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<MultiWorkerAllReduce>> sums_;
  ReductionToOneDevice to_one_{{}, {}, side_.cluster};
  ReductionToOneDevice by_function_{{}, chain, side_.cluster};
};

// One letter a worker for the machine that it is on.
void expect_same_bits(const std::string& machines, const std::string& outbox_bytes, std::uint64_t seed) {
  SCOPED_TRACE(machines + ", seed " + std::to_string(seed));
  const auto environment = [&](int rank) -> Environment {
    return {{"ONESUM_MACHINE", std::string(1, machines[static_cast<std::size_t>(rank)])},
            {"ONESUM_TRANSPORT", "auto"},
            {"ONESUM_OUTBOX_BYTES", outbox_bytes}};
  };
  const auto results = [&](const Side& side) { return Caller(side, seed).results(); };
  std::string found;
  for (const WorkerEnd& end : run_workers(
           kWorkers, [&](int rank) { return results({Cluster::from_environment(), rank, kWorkers}); },
           environment)) {
    found += end.text;
  }
  EXPECT_THAT(found, AllOf(Not(HasSubstr("error ")), Not(HasSubstr("exception"))));
  EXPECT_EQ(found, run_alone([&] {
              return results({Cluster::embedded(worker_names(kWorkers), kDevices), -1, kWorkers});
            }));
}

TEST(AlternatingCalls, OnOneMachine) {
  expect_same_bits("aaaa", "64M", 1);
  expect_same_bits("aaaa", kLittleRoom, 2);
}

TEST(AlternatingCalls, OnSeveralMachines) {
  expect_same_bits("aaab", kLittleRoom, 3);
  expect_same_bits("abab", kLittleRoom, 4);
}

}  // namespace
}  // namespace onesum::testing
