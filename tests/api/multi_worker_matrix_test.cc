// docs/semantics.md, 9.2, over two workers: values A (replica i holds i) and B (i + 1), SUM and MEAN, to the
// same devices, to a Mirrored on worker 0's CPU:0 and to its name, one by one and in batches of two.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::devices_of;
using testing::scalar;

const std::vector<std::string> kWorkers{"/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"};
constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};

struct Way {
  const char* name;
  AllReduceSpecs specs;
  int num_packs = 0;
  int max_bytes = 0;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"two levels", {{"pscpu/pscpu", 2, -1}}},
      {"two levels, one pack", {{"pscpu/pscpu", 2, -1}}, 1},
      {"two levels, small tensors grouped", {{"pscpu/pscpu", 2, -1}}, 0, 100},
      {"two specs", {{"pscpu/pscpu", 2, 100}, {"xring", 2, -1}}},
      {"NCCL and a ring, two shards", {{"nccl/xring", 2, -1}}},
      {"more packs than elements", "nccl/rechd", 8},
      {"many shards", "nccl/pscpu#7:0:psgpu#9"},
      {"all levels of our own", "direct:4:hierarchical_copy:8:auto"},
  };
  return all;
}

std::vector<std::vector<std::string>> device_lists() {
  const auto on = [](std::size_t task, int index) {
    return kWorkers[task] + "/device:CPU:" + std::to_string(index);
  };
  return {{on(0, 0), on(1, 0)},
          {on(0, 0), on(0, 1), on(1, 0), on(1, 1)},
          {on(1, 1), on(0, 1)},
          {on(1, 0), on(0, 1), on(1, 1), on(0, 0)},
          {on(0, 1), on(1, 0), on(1, 1)}};
}

class Matrix {
 public:
  Matrix(const Way& way, std::vector<std::string> devices)
      : ops_(kWorkers, 2, way.specs, way.num_packs, way.max_bytes, 10), devices_(std::move(devices)) {}

  void check() {
    for (const ReduceOp op : kBoth) {
      for (const Destination& x : destinations()) {
        check_reduce(op, x);
        for (const Destination& y : destinations()) check_batch(op, x, y);
      }
    }
    for (const Destination& x : destinations()) {
      expect_holds(ops_.broadcast(scalar(1.0F, devices_.back()), x, 1), 1.0F, x);
    }
  }

 private:
  PerReplica value(float first) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      tensors.push_back(scalar(first + static_cast<float>(i), devices_[i]));
    return PerReplica(std::move(tensors));
  }

  std::vector<Destination> destinations() const {
    const std::string host = kWorkers[0] + "/device:CPU:0";
    std::vector<Value> same;
    for (const std::string& device : devices_) same.emplace_back(scalar(-1.0F, device));
    return {Mirrored(same), Mirrored({scalar(-1.0F, host)}), host};
  }

  float expected(ReduceOp op, float first) const {
    const auto n = static_cast<float>(devices_.size());
    const float sum = n * (n - 1) / 2 + first * n;
    return op == ReduceOp::kSum ? sum : sum / n;
  }

  void check_reduce(ReduceOp op, const Destination& to) {
    expect_holds(ops_.reduce(op, value(0), to), expected(op, 0), to);
    expect_holds(ops_.reduce(op, value(1), to), expected(op, 1), to);
  }

  void check_batch(ReduceOp op, const Destination& x, const Destination& y) {
    const std::vector<ValueDestination> pairs{{value(0), x}, {value(1), y}};
    const std::vector<Mirrored> results = ops_.batch_reduce(op, pairs);
    ASSERT_EQ(results.size(), 2U);
    expect_holds(results[0], expected(op, 0), x);
    expect_holds(results[1], expected(op, 1), y);
  }

  static void expect_holds(const Mirrored& result, float number, const Destination& to) {
    EXPECT_EQ(devices_of(result), std::vector<Device>(to.devices().begin(), to.devices().end()));
    for (std::size_t d = 0; d < result.size(); ++d)
      EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{number});
  }

  MultiWorkerAllReduce ops_;
  std::vector<std::string> devices_;
};

TEST(MultiWorkerMatrix, ReducesAndBroadcasts) {
  for (const Way& way : ways()) {
    for (const std::vector<std::string>& devices : device_lists()) {
      SCOPED_TRACE(std::string(way.name) + " from " + devices.front());
      Matrix(way, devices).check();
    }
  }
}

// 6.5: tensors that fall under different specs, of different types, come back in the order they were given.
TEST(MultiWorkerMatrix, ResultsComeInInputOrderWhateverSpecsTheyFallUnder) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    MultiWorkerAllReduce ops(kWorkers, 2, way.specs, way.num_packs, way.max_bytes);
    const std::vector<std::string> devices = device_lists()[3];
    std::vector<ValueDestination> pairs;
    for (int i = 0; i < 12; ++i) {
      std::vector<Tensor> tensors;
      const auto length = static_cast<std::size_t>(i % 3 == 0 ? 1000 - i : i % 4);
      for (const std::string& device : devices) {
        tensors.push_back(
            i % 2 == 0
                ? testing::vector_of<float>(std::vector<float>(length, 1.0F + static_cast<float>(i)), device)
                : testing::vector_of<double>(std::vector<double>(length, 1.0 + i), device));
      }
      const PerReplica value(std::move(tensors));
      pairs.push_back({value, value});
    }
    const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kMean, pairs);
    ASSERT_EQ(results.size(), pairs.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      for (std::size_t d = 0; d < devices.size(); ++d) {
        EXPECT_EQ(testing::bytes_of(results[i].tensor(d)), testing::bytes_of(pairs[i].value.tensor(d)));
      }
    }
  }
}

}  // namespace
}  // namespace onesum
