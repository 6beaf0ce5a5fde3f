#include "conformance/worker_checks.h"

#include <gtest/gtest.h>

#include "conformance/core_matrix.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

// "/job:worker/replica:0/task:0" …
std::vector<std::string> names_of_workers(int workers) {
  std::vector<std::string> names;
  for (int w = 0; w < workers; ++w) names.push_back("/job:worker/replica:0/task:" + std::to_string(w));
  return names;
}

MultiWorkerAllReduce ops_of(const WorkerWay& way) {
  return {names_of_workers(2), 2, way.specs, way.num_packs, way.max_bytes, 10};
}

struct Equivalence {
  int workers;
  int devices;  // of each
  Shape shape;
  int shards = 1;
};

// Worker by worker.
std::vector<std::string> names_of_devices(int workers, int devices, std::string_view type) {
  std::vector<std::string> names;
  for (const std::string& worker : names_of_workers(workers)) {
    for (int d = 0; d < devices; ++d)
      names.push_back(worker + "/device:" + std::string(type) + ":" + std::to_string(d));
  }
  return names;
}

// Element i of replica d is i + 0.01 d; every result holds the mean.
void expect_means(const std::string& algorithm, const Equivalence& point, std::string_view type) {
  SCOPED_TRACE(algorithm + "#" + std::to_string(point.shards) + " on " + std::to_string(point.workers) +
               " x " + std::to_string(point.devices) + " of " + point.shape.to_string());
  MultiWorkerAllReduce ops(names_of_workers(point.workers), point.devices,
                           AllReduceSpec{algorithm, point.shards});
  const std::vector<std::string> devices = names_of_devices(point.workers, point.devices, type);
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    std::vector<float> numbers;
    for (std::size_t i = 0; i < point.shape.elements(); ++i)
      numbers.push_back(static_cast<float>(i) + 0.01F * static_cast<float>(d));
    tensors.push_back(Tensor::from<float>(std::span<const float>(numbers), point.shape, devices[d]));
  }
  const PerReplica value(std::move(tensors));
  const Mirrored mean = ops.reduce(ReduceOp::kMean, value, value);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    EXPECT_EQ(mean.tensor(d).shape(), point.shape);
    const std::vector<float> found = contents<float>(mean.tensor(d));
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], static_cast<float>(i) + 0.005F * static_cast<float>(devices.size() - 1), 1e-4);
  }
}

// Replica r is full of numbers[r], on a worker of its own.
std::vector<float> sum_over_workers(const std::string& algorithm, const std::vector<float>& numbers,
                                    std::string_view type) {
  const auto n = static_cast<int>(numbers.size());
  const std::vector<std::string> devices = names_of_devices(n, 1, type);
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < numbers.size(); ++r)
    tensors.push_back(vector_of(std::vector<float>(numbers.size(), numbers[r]), devices[r]));
  const PerReplica value(std::move(tensors));
  MultiWorkerAllReduce ops(names_of_workers(n), 1, algorithm);
  return contents<float>(ops.reduce(ReduceOp::kSum, value, value).tensor(0));
}

// Some are long, some empty; every second one is of doubles.
PerReplica value_of(int number, const std::vector<std::string>& devices) {
  std::vector<Tensor> tensors;
  const auto length = static_cast<std::size_t>(number % 3 == 0 ? 1000 - number : number % 4);
  for (const std::string& device : devices) {
    tensors.push_back(number % 2 == 0
                          ? vector_of(std::vector<float>(length, 1.0F + static_cast<float>(number)), device)
                          : vector_of(std::vector<double>(length, 1.0 + number), device));
  }
  return PerReplica(std::move(tensors));
}

}  // namespace

const std::vector<WorkerWay>& worker_ways() {
  static const std::vector<WorkerWay> all = {
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

std::vector<std::vector<std::string>> worker_device_lists(std::string_view type) {
  const std::vector<std::string> all = names_of_devices(2, 2, type);
  const auto on = [&](std::size_t worker, std::size_t index) { return all[2 * worker + index]; };
  return {{on(0, 0), on(1, 0)},
          {on(0, 0), on(0, 1), on(1, 0), on(1, 1)},
          {on(1, 1), on(0, 1)},
          {on(1, 0), on(0, 1), on(1, 1), on(0, 0)},
          {on(0, 1), on(1, 0), on(1, 1)}};
}

void check_worker_matrix(const WorkerWay& way, const std::vector<std::string>& devices) {
  SCOPED_TRACE(way.name);
  MultiWorkerAllReduce ops = ops_of(way);
  const Stage stage(devices, names_of_devices(1, 1, "CPU").front());
  check_core_matrix(ops, stage);
  check_broadcast(ops, stage, 1);
}

void check_input_order(const WorkerWay& way, const std::vector<std::string>& devices) {
  SCOPED_TRACE(way.name);
  MultiWorkerAllReduce ops = ops_of(way);
  std::vector<PerReplica> values;
  for (int number = 0; number < 12; ++number) values.push_back(value_of(number, devices));
  const std::vector<Mirrored> means = ops.batch_reduce(ReduceOp::kMean, to_own_devices(values));
  ASSERT_EQ(means.size(), values.size());
  for (std::size_t i = 0; i < means.size(); ++i) {
    for (std::size_t d = 0; d < devices.size(); ++d)
      EXPECT_EQ(bytes_of(means[i].tensor(d)), bytes_of(values[i].tensor(d)));
  }
}

void check_equivalence(std::string_view type, int most_devices) {
  const std::vector<Equivalence> points{
      {1, 2, Shape{}},        {1, 2, Shape{8}},       {1, 2, Shape{4, 4}},  {6, 1, Shape{8}},
      {1, 8, Shape{32}},      {1, 8, Shape{120}},     {2, 8, Shape{7, 13}}, {2, 8, Shape{7, 13}, 3},
      {2, 8, Shape{8, 8}, 2}, {2, 8, Shape{8, 8}, 4}, {3, 1, Shape{5}, 2},  {4, 8, Shape{8, 8, 2}, 4}};
  for (const Equivalence& point : points) {
    if (point.workers * point.devices > most_devices) continue;
    for (const char* algorithm : {"xring", "pscpu", "psgpu", "rechd", "nccl/xring", "nccl/rechd",
                                  "pscpu/pscpu", "hierarchical_copy", "direct"}) {
      expect_means(algorithm, point, type);
    }
  }
}

void check_canonical_order(std::string_view type, const std::string& algorithm) {
  EXPECT_EQ(sum_over_workers(algorithm, {1e8F, 1, -1e8F}, type), std::vector<float>(3, 0)) << algorithm;
  EXPECT_EQ(sum_over_workers(algorithm, {1e8F, 1, -1e8F, 1}, type), std::vector<float>(4, 0)) << algorithm;
  EXPECT_EQ(sum_over_workers(algorithm, {1e8F, -1e8F, 1, 1}, type), std::vector<float>(4, 2)) << algorithm;
}

void check_order_of_ring(std::string_view type) {
  EXPECT_EQ(sum_over_workers("xring", {1e8F, 1, -1e8F}, type), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(sum_over_workers("xring", {1e8F, 1, -1e8F, 1}, type), (std::vector<float>{0, 1, 0, 1}));
}

}  // namespace onesum::testing
