// Calls of which some tensors are in place and some are not: a worker's own affair, which the others must not
// notice.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "workers.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 3;
constexpr std::size_t kElements = 1200;  // of a part
constexpr auto kAll = static_cast<std::size_t>(kWorkers) * kElements;

Tensor borrow(std::vector<float>& memory, std::size_t first, std::size_t count) {
  return Tensor::borrow(memory.data() + first, DType::kFloat32, Shape{static_cast<std::int64_t>(count)},
                        "CPU:0");
}

float value_of(std::size_t rank, std::size_t tensor, std::size_t element) {
  return static_cast<float>(rank * 7 + tensor * 3 + element % 11);
}

float sum_of(std::size_t tensor, std::size_t element) {
  float sum = 0;
  for (std::size_t rank = 0; rank < kWorkers; ++rank) sum += value_of(rank, tensor, element);
  return sum;
}

// One tensor of a call, on one worker.
struct Case {
  CollectiveKind kind;
  std::size_t rank;
  std::size_t tensor;
  bool in_place;
  bool is_empty = false;
  std::vector<float> whole = std::vector<float>(kAll);
  std::vector<float> other = std::vector<float>(kAll, -1);

  bool is_root() const { return rank == 0; }
  bool brings_part() const { return kind == CollectiveKind::kAllGather; }
  bool gets_part() const { return kind == CollectiveKind::kReduceScatter; }

  void fill() {
    for (std::size_t i = 0; i < kAll; ++i) whole[i] = value_of(rank, tensor, i);
    std::ranges::fill(other, -1.0F);
  }

  PerReplica value() {
    if (is_empty) return borrow(whole, 0, 0);
    if (kind == CollectiveKind::kBroadcast && !is_root()) return {};
    return brings_part() ? borrow(whole, rank * kElements, kElements) : borrow(whole, 0, kAll);
  }

  PerReplica result() {
    if (is_empty) return borrow(in_place ? whole : other, 0, 0);
    std::vector<float>& memory =
        in_place && (kind != CollectiveKind::kBroadcast || is_root()) ? whole : other;
    return gets_part() ? borrow(memory, rank * kElements, kElements) : borrow(memory, 0, kAll);
  }

  float expected(std::size_t element) const {
    switch (kind) {
      case CollectiveKind::kBroadcast:
        return value_of(0, tensor, element);
      case CollectiveKind::kAllGather:
        return value_of(element / kElements, tensor, element);
      default:
        return sum_of(tensor, element);
    }
  }

  bool is_good() {
    if (is_empty) return true;
    const PerReplica got = result();
    const std::size_t first = gets_part() ? rank * kElements : 0;
    for (std::size_t i = 0; i < got.tensor().shape().elements(); ++i) {
      if (got.tensor().data<float>()[i] != expected(first + i)) return false;
    }
    if (in_place) return true;
    for (std::size_t i = 0; i < kAll; ++i) {
      if (whole[i] != value_of(rank, tensor, i)) return false;
    }
    return true;
  }
};

struct Batch {
  std::vector<Case> cases;

  Collective call() {
    Collective call{cases.front().kind, ReduceOp::kSum, 0, {}, {}};
    for (Case& its : cases) {
      its.fill();
      call.values.push_back(its.value());
      call.results.push_back(its.result());
    }
    return call;
  }
  std::string fault(const std::string& how) {
    std::string text;
    for (Case& its : cases) {
      if (its.is_good()) continue;
      text += "worker " + std::to_string(its.rank) + ", " + std::string(to_string(its.kind)) + " " + how +
              ": tensor " + std::to_string(its.tensor) + " is wrong\n";
    }
    return text;
  }
};

class InPlace : public ::testing::TestWithParam<const char*> {};

TEST_P(InPlace, OfSomeTensors) {
  const auto body = [](int own) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice to_one({}, {}, cluster);
    AllReduceCrossDeviceOps all_reduce("auto", 0, 0, 10, cluster);
    const auto rank = static_cast<std::size_t>(own);
    std::string faults;
    for (const CollectiveKind kind : {CollectiveKind::kReduce, CollectiveKind::kBroadcast,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
      for (CrossDeviceOps* const ops :
           {static_cast<CrossDeviceOps*>(&to_one), static_cast<CrossDeviceOps*>(&all_reduce)}) {
        // Alike on all workers, on one of them only, differently on all; with a tensor that has no elements.
        for (const int pattern : {0, 1, 2, 3}) {
          Batch batch;
          for (std::size_t t = 0; t < 4; ++t) {
            const bool is_odd = t % 2 == 1;
            const bool in_place = pattern == 0   ? is_odd
                                  : pattern == 1 ? rank == 1 && is_odd
                                  : pattern == 2 ? (t + rank) % 2 == 1
                                                 : true;
            batch.cases.push_back({kind, rank, t, in_place, pattern == 3 && t == 1});
          }
          Collective call = batch.call();
          ops->run(call);
          faults += batch.fault("run");
          PreparedReduce prepared = ops->prepare(batch.call());
          for (int again = 0; again < 2; ++again) {
            for (Case& its : batch.cases) its.fill();
            prepared.run();
            faults += batch.fault("prepared");
          }
        }
      }
    }
    return faults;
  };
  for (const WorkerEnd& end : run_workers(kWorkers, body, {{"ONESUM_TRANSPORT", GetParam()}})) {
    EXPECT_EQ(end.text, "");
  }
}

// What is not exactly in place stays refused.
TEST_P(InPlace, OfSomeTensorsRefusesOtherOverlaps) {
  const auto body = [](int) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::vector<float> memory(100);
    std::vector<float> apart(20);
    const std::vector<PerReplica> values{borrow(memory, 0, 10), borrow(apart, 0, 10)};
    std::vector<PerReplica> results{borrow(memory, 0, 10), borrow(memory, 5, 10)};
    try {
      ops.batch_reduce_into(ReduceOp::kSum, values, results);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const WorkerEnd& end : run_workers(2, body, {{"ONESUM_TRANSPORT", GetParam()}})) {
    EXPECT_NE(end.text.find("share memory"), std::string::npos) << end.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, InPlace, ::testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace onesum::testing
