// docs/semantics.md, sections 4 to 6 and 9, for the classes that all-reduce: numbers known from elsewhere on
// several devices and workers, and cases in which other implementations fail.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>
#include <onesum/variable.h>

#include "api/sparse.h"
#include "same_bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::device_name;
using testing::expect_invalid;
using testing::Layout;
using testing::slices;
using testing::to_own_devices;
using testing::worker_names;

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;
using Ops = std::unique_ptr<CrossDeviceOps>;

void expect_slices(const IndexedSlices& found, const Floats& values, const Indices& indices,
                   const std::optional<Shape>& dense_shape) {
  EXPECT_EQ(contents<float>(found.values), values);
  EXPECT_EQ(contents<std::int64_t>(found.indices), indices);
  EXPECT_EQ(found.dense_shape, dense_shape);
}

PerReplica vectors_on(const std::vector<std::string>& devices, const std::vector<Floats>& numbers) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < devices.size(); ++r) {
    tensors.push_back(testing::vector_of<float>(numbers[r], Device(devices[r])));
  }
  return PerReplica(std::move(tensors));
}

// Each of the classes that all-reduce, over the devices of one process.
std::vector<Ops> local_classes() {
  std::vector<Ops> all;
  all.push_back(std::make_unique<AllReduceCrossDeviceOps>());
  all.push_back(std::make_unique<AllReduceCrossDeviceOps>("nccl", 0));
  all.push_back(std::make_unique<AllReduceCrossDeviceOps>("xring"));
  all.push_back(std::make_unique<NcclAllReduce>(3));
  all.push_back(std::make_unique<HierarchicalCopyAllReduce>(8));
  return all;
}

std::vector<AllReduceSpecs> some_specs() {
  return {{{"pscpu/pscpu", 2, -1}}, "xring", "nccl/xring#2", "rechd", "nccl/direct#3", "auto"};
}

class Workers : public ::testing::Test {
 protected:
  testing::Quiet quiet_;
};

// 4.2, 4.3, 9.7
TEST_F(Workers, SparseValuesAreConcatenatedByEveryClass) {
  const PerReplica value(
      {slices({{1, 2}}, {1}, Shape{5, 2}, "CPU:0"), slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, "CPU:1")});
  for (const Ops& ops : local_classes()) {
    for (const bool batched : {false, true}) {
      const auto reduce = [&](ReduceOp op, const Destination& to) {
        return batched ? ops->batch_reduce(op, testing::one_pair(value, to)).at(0)
                       : ops->reduce(op, value, to);
      };
      for (std::size_t d = 0; d < 2; ++d) {
        const Mirrored sum = reduce(ReduceOp::kSum, value);
        expect_slices(sum.slices(d), {1, 2, 3, 4, 5, 6}, {1, 1, 3}, Shape{5, 2});
        EXPECT_EQ(contents<float>(api::densify(sum.slices(d), Shape{5, 2}, DType::kFloat32)),
                  (Floats{0, 0, 4, 6, 0, 0, 5, 6, 0, 0}));
        expect_slices(reduce(ReduceOp::kMean, value).slices(d), {.5F, 1, 1.5F, 2, 2.5F, 3}, {1, 1, 3},
                      Shape{5, 2});
      }
      expect_slices(reduce(ReduceOp::kSum, "CPU:0").slices(), {1, 2, 3, 4, 5, 6}, {1, 1, 3}, Shape{5, 2});
    }
  }
}

// 4.2 to 4.5, 6.4: of unequal lengths, some empty; the dense shape may be absent; MEAN divides values only.
TEST_F(Workers, SparseValuesAcrossWorkers) {
  for (const AllReduceSpecs& specs : some_specs()) {
    SCOPED_TRACE(specs.to_string());
    MultiWorkerAllReduce ops(worker_names(2), 2, specs, 1);
    for (const std::optional<Shape>& shape : {std::optional<Shape>(Shape{10, 1}), std::optional<Shape>()}) {
      const PerReplica value({slices({{1}}, {0}, shape, device_name(0, 0)),
                              slices({{2}, {3}, {4}}, {0, 1, 2}, shape, device_name(1, 1)),
                              slices({}, {}, shape, device_name(1, 0))});
      const PerReplica permuted({slices({}, {}, shape, device_name(1, 0)),
                                 slices({}, {}, shape, device_name(0, 0)),
                                 slices({}, {}, shape, device_name(1, 1))});
      const Mirrored sum = ops.reduce(ReduceOp::kSum, value, permuted);
      EXPECT_EQ(testing::devices_of(sum), testing::devices_of(permuted));
      const Mirrored mean = ops.reduce(ReduceOp::kMean, value, value);
      for (std::size_t d = 0; d < 3; ++d) {
        expect_slices(sum.slices(d), {1, 2, 3, 4}, {0, 0, 1, 2}, shape);
        expect_slices(mean.slices(d), {1.0F / 3, 2.0F / 3, 1, 4.0F / 3}, {0, 0, 1, 2}, shape);
      }
    }
  }
}

// 5.4: dense ones of a batch are still packed, and everything comes back where it was.
TEST_F(Workers, BatchesOfDenseAndSparseValues) {
  const std::vector<std::string> on{device_name(0, 0), device_name(1, 0)};
  const PerReplica dense = vectors_on(on, {{1, 2}, {3, 4}});
  const PerReplica first(
      {slices({{1}, {2}}, {0, 1}, Shape{10, 1}, on[0]), slices({{3}, {4}}, {1, 2}, Shape{10, 1}, on[1])});
  const PerReplica second(
      {slices({{5}}, {7}, Shape{5, 1}, on[0]), slices({{6}, {7}}, {3, 2}, Shape{5, 1}, on[1])});
  const PerReplica mixed({Value(Tensor::from<float>({1, 1, 1, 1}, {2, 2}, on[0])),
                          Value(slices({{2, 3}, {4, 5}}, {1, 1}, {}, on[1]))});
  for (const AllReduceSpecs& specs : some_specs()) {
    SCOPED_TRACE(specs.to_string());
    MultiWorkerAllReduce ops(worker_names(2), 1, specs, 1);
    const std::vector<PerReplica> values{first, dense, mixed, second, dense};
    const std::vector<Mirrored> sums = ops.batch_reduce(ReduceOp::kSum, to_own_devices(values));
    const std::vector<std::size_t> packs = ops.plan(ReduceOp::kSum, to_own_devices(values)).pack_elements();
    EXPECT_EQ(std::ranges::count(packs, 8U), 1) << "the three dense values are one pack";
    for (std::size_t d = 0; d < 2; ++d) {
      expect_slices(sums[0].slices(d), {1, 2, 3, 4}, {0, 1, 1, 2}, Shape{10, 1});
      EXPECT_EQ(contents<float>(sums[1].tensor(d)), (Floats{4, 6}));
      EXPECT_EQ(contents<float>(sums[2].tensor(d)), (Floats{1, 1, 7, 9}));
      expect_slices(sums[3].slices(d), {5, 6, 7}, {7, 3, 2}, Shape{5, 1});
      EXPECT_EQ(contents<float>(sums[4].tensor(d)), (Floats{4, 6}));
    }
  }
}

// 4.7
TEST_F(Workers, DuplicateRowsMayBeMerged) {
  MultiWorkerAllReduce ops(worker_names(2), 1);
  const PerReplica value({slices({{1, 2}}, {1}, Shape{5, 2}, device_name(0, 0)),
                          slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, device_name(1, 0))});
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  expect_slices(ops.reduce(ReduceOp::kSum, value, value, options).slices(1), {4, 6, 5, 6}, {1, 3},
                Shape{5, 2});
}

// 5.3, 5.4: one or two workers of one or two devices.
TEST_F(Workers, DenseNumbers) {
  const std::vector<Floats> vectors{{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  for (const Layout& layout : {Layout{1, 1}, Layout{2, 1}, Layout{1, 2}, Layout{2, 2}, Layout{4, 1}}) {
    for (const AllReduceSpecs& specs : some_specs()) {
      SCOPED_TRACE(specs.to_string() + " on " + layout.name());
      MultiWorkerAllReduce ops(worker_names(layout.workers), layout.devices, specs);
      const std::vector<std::string> devices = testing::device_names(layout);
      const std::size_t n = devices.size();
      const PerReplica value = vectors_on(devices, vectors);
      const Floats sum = n == 1 ? Floats{1, 2} : n == 2 ? Floats{4, 6} : Floats{16, 20};
      const Floats mean = n == 1 ? Floats{1, 2} : n == 2 ? Floats{2, 3} : Floats{4, 5};
      for (std::size_t d = 0; d < n; ++d) {
        EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, value).tensor(d)), sum);
        EXPECT_EQ(contents<float>(
                      ops.batch_reduce(ReduceOp::kMean, testing::one_pair(value, value)).at(0).tensor(d)),
                  mean);
      }
    }
  }
}

struct Equivalence {
  Layout layout;
  Shape shape;
  int shards = 1;
};

// Element i of replica d is i + 0.01 d; every result holds the mean.
void expect_means(const std::string& algorithm, const Equivalence& point) {
  SCOPED_TRACE(algorithm + "#" + std::to_string(point.shards) + " on " + point.layout.name() + " of " +
               point.shape.to_string());
  MultiWorkerAllReduce ops(worker_names(point.layout.workers), point.layout.devices,
                           AllReduceSpec{algorithm, point.shards});
  const std::vector<std::string> devices = testing::device_names(point.layout);
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    Floats numbers;
    for (std::size_t i = 0; i < point.shape.elements(); ++i) {
      numbers.push_back(static_cast<float>(i) + 0.01F * static_cast<float>(d));
    }
    tensors.push_back(Tensor::from<float>(std::span<const float>(numbers), point.shape, Device(devices[d])));
  }
  const PerReplica value(std::move(tensors));
  const Mirrored mean = ops.reduce(ReduceOp::kMean, value, value);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    EXPECT_EQ(mean.tensor(d).shape(), point.shape);
    for (std::size_t i = 0; i < point.shape.elements(); ++i) {
      EXPECT_NEAR(mean.tensor(d).data<float>()[i],
                  static_cast<float>(i) + 0.005F * static_cast<float>(devices.size() - 1), 1e-4);
    }
  }
}

// 6.6
TEST_F(Workers, AlgorithmsAreEquivalent) {
  const std::vector<Equivalence> points{
      {{1, 2}, Shape{}},        {{1, 2}, Shape{8}},          {{1, 2}, Shape{4, 4}},
      {{6, 1}, Shape{8}},       {{1, 8}, Shape{32}},         {{1, 8}, Shape{120}},
      {{2, 8}, Shape{7, 13}},   {{2, 8}, Shape{7, 13}, 3},   {{2, 8}, Shape{8, 8}, 2},
      {{2, 8}, Shape{8, 8}, 4}, {{4, 8}, Shape{8, 8, 2}, 4}, {{3, 1}, Shape{5}, 2}};
  for (const Equivalence& point : points) {
    for (const char* algorithm : {"xring", "pscpu", "psgpu", "rechd", "nccl/xring", "nccl/rechd",
                                  "pscpu/pscpu", "hierarchical_copy", "direct"}) {
      expect_means(algorithm, point);
    }
  }
}

// 6.2: no replica is lost, whatever the number of devices.
TEST_F(Workers, HierarchicalCopyTakesEveryNumberOfDevices) {
  for (const int packs : {0, 1, 2, 5}) {
    HierarchicalCopyAllReduce ops(packs);
    for (std::size_t n = 1; n <= 9; ++n) {
      Floats powers;
      for (std::size_t r = 0; r < n; ++r) powers.push_back(static_cast<float>(1U << r));
      const PerReplica value = testing::scalars<float>(powers);
      const Mirrored sum = ops.reduce(ReduceOp::kSum, value, value);
      for (std::size_t d = 0; d < n; ++d) {
        EXPECT_EQ(contents<float>(sum.tensor(d)), Floats{static_cast<float>((1U << n) - 1)});
      }
    }
  }
}

// 6.5: the default and many shards work with one worker, and rings of two levels in several shards.
TEST_F(Workers, MoreShardsThanDevices) {
  for (const char* text : {"pscpu/pscpu#2", "nccl/xring#2", "xring#7", "psgpu#9", "pscpu#5", "nccl#4"}) {
    for (const int workers : {1, 2, 3}) {
      MultiWorkerAllReduce ops(worker_names(workers), 1, text);
      std::vector<Floats> ones(static_cast<std::size_t>(workers), Floats{1, 2, 3, 4, 5});
      const PerReplica value = vectors_on(testing::device_names({workers, 1}), ones);
      EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, value, value).tensor(0)), ones[0]) << text;
    }
  }
  MultiWorkerAllReduce standard(worker_names(1), 0);
  const PerReplica alone = vectors_on({device_name(0, 0)}, {{4, 5}});
  EXPECT_EQ(contents<float>(standard.reduce(ReduceOp::kSum, alone, alone)), (Floats{4, 5}));
}

// 9.3, 9.12
TEST_F(Workers, OrderOfKnownNumbers) {
  const auto sum = [](const char* algorithm, const std::vector<float>& numbers) {
    std::vector<Floats> vectors;
    for (const float number : numbers) vectors.emplace_back(numbers.size(), number);
    const auto n = static_cast<int>(numbers.size());
    MultiWorkerAllReduce ops(worker_names(n), 1, algorithm);
    const PerReplica value = vectors_on(testing::device_names({n, 1}), vectors);
    return contents<float>(ops.reduce(ReduceOp::kSum, value, value).tensor(0));
  };
  for (const char* algorithm : {"rechd", "pscpu", "direct", "hierarchical_copy", "nccl", "pscpu/pscpu"}) {
    EXPECT_EQ(sum(algorithm, {1e8F, 1, -1e8F}), Floats(3, 0)) << algorithm;
    EXPECT_EQ(sum(algorithm, {1e8F, 1, -1e8F, 1}), Floats(4, 0)) << algorithm;
    EXPECT_EQ(sum(algorithm, {1e8F, -1e8F, 1, 1}), Floats(4, 2)) << algorithm;
  }
  EXPECT_EQ(sum("xring", {1e8F, 1, -1e8F}), (Floats{0, 1, 0}));
  EXPECT_EQ(sum("xring", {1e8F, 1, -1e8F, 1}), (Floats{0, 1, 0, 1}));
}

// 6.3: numbers that no order of additions rounds are the same, grouped or not.
TEST_F(Workers, GroupsOfSmallTensorsUnderARing) {
  const std::vector<Shape> shapes{Shape{8}, Shape{3, 3}, Shape{12}, Shape{5, 5, 5}, Shape{3}, Shape{4}};
  const std::vector<std::string> devices = cpus(3);
  std::vector<PerReplica> values;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    std::vector<Tensor> tensors;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const Floats numbers(shapes[t].elements(), static_cast<float>(t * 10 + d));
      tensors.push_back(Tensor::from<float>(std::span<const float>(numbers), shapes[t], Device(devices[d])));
    }
    values.emplace_back(std::move(tensors));
  }
  AllReduceCrossDeviceOps plain("xring", 0);
  AllReduceCrossDeviceOps grouped("xring", 0, 40, 10);
  const std::vector<Mirrored> a = plain.batch_reduce(ReduceOp::kSum, to_own_devices(values));
  const std::vector<Mirrored> b = grouped.batch_reduce(ReduceOp::kSum, to_own_devices(values));
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    EXPECT_EQ(testing::bytes_of(a[t].tensor(0)), testing::bytes_of(b[t].tensor(2)));
  }
}

// 2.6
TEST_F(Workers, VariablesAreValuesAndDestinationsAndStayAsTheyAre) {
  const std::vector<Device> devices{"CPU:1", "CPU:0"};
  const MirroredVariable variable("v", testing::scalar(1.0F, "CPU:0"), devices);
  for (const Ops& ops : local_classes()) {
    for (const bool batched : {false, true}) {
      const Mirrored mean =
          batched ? ops->batch_reduce(ReduceOp::kMean, testing::one_pair(variable, variable)).at(0)
                  : ops->reduce(ReduceOp::kMean, variable, variable);
      for (std::size_t d = 0; d < 2; ++d) EXPECT_EQ(contents<float>(mean.tensor(d)), Floats{1});
    }
    EXPECT_EQ(contents<float>(ops->reduce(ReduceOp::kSum, variable, variable).tensor(0)), Floats{2});
    for (const Tensor& component : variable.components()) EXPECT_EQ(contents<float>(component), Floats{1});
  }
}

// 5.2: of one replica and of several, nothing shares memory.
TEST_F(Workers, NothingAliases) {
  for (const Ops& ops : local_classes()) {
    for (const std::size_t n : {1U, 2U, 3U}) {
      const PerReplica value = testing::scalars<float>(Floats(n, 2));
      const std::vector<Mirrored> results =
          ops->batch_reduce(ReduceOp::kMean, to_own_devices({value, value}));
      std::vector<const void*> memory;
      for (std::size_t d = 0; d < n; ++d) {
        memory.push_back(value.tensor(d).memory());
        for (const Mirrored& result : results) memory.push_back(result.tensor(d).memory());
        EXPECT_EQ(contents<float>(value.tensor(d)), Floats{2});
      }
      std::ranges::sort(memory);
      EXPECT_EQ(std::ranges::adjacent_find(memory), memory.end());
    }
  }
}

// 3.1, 3.2, 5.4, 8.5, 8.10: the same rules as everywhere.
TEST_F(Workers, CommonRulesHoldInEveryClass) {
  for (const Ops& ops : local_classes()) {
    EXPECT_TRUE(ops->batch_reduce(ReduceOp::kSum, {}).empty());
    const PerReplica one = testing::scalars<float>({1});
    const auto wrong = static_cast<ReduceOp>(7);
    expect_invalid([&] { ops->reduce(wrong, one, one); }, {"7"});
    expect_invalid([&] { ops->batch_reduce(wrong, {}); }, {"7"});
    const PerReplica twice(
        std::vector<Tensor>{testing::scalar(1.0F, "CPU:0"), testing::scalar(2.0F, "/cpu:0")});
    expect_invalid([&] { ops->reduce(ReduceOp::kSum, twice, twice); }, {"two replicas"});
    expect_invalid([&] { ops->reduce(ReduceOp::kSum, testing::scalars<bool>({true}), one); }, {"bool"});
    const PerReplica integers = testing::scalars<std::int32_t>({1, 2});
    EXPECT_EQ(contents<double>(ops->reduce(ReduceOp::kMean, integers, integers).tensor(1)),
              std::vector<double>{1.5});
    const PerReplica seven = testing::scalars<std::int32_t>({7});
    EXPECT_EQ(contents<double>(ops->reduce(ReduceOp::kMean, seven, seven)), std::vector<double>{7});
    const Tensor cube = Tensor::from<float>({1, 2, 1, 2}, {1, 2, 2}, "CPU:0");
    const PerReplica two(std::vector<Tensor>{cube, Tensor::from<float>({1, 2, 1, 2}, {1, 2, 2}, "CPU:1")});
    EXPECT_EQ(contents<float>(ops->gather(two, two, 2).tensor(1)), (Floats{1, 2, 1, 2, 1, 2, 1, 2}));
  }
}

// 5.12: two threads that reduce different values over the same devices do not block each other for ever.
TEST_F(Workers, CallsOfTwoThreadsBothEnd) {
  const testing::HangGuard guard;
  MultiWorkerAllReduce ops(worker_names(2), 1, "xring#2");
  const std::vector<std::string> devices = testing::device_names({2, 1});
  const auto repeat = [&](float number) {
    const std::vector<PerReplica> values(2, vectors_on(devices, {{number}, {number}}));
    for (int i = 0; i < 200; ++i) {
      for (const Mirrored& sum : ops.batch_reduce(ReduceOp::kSum, to_own_devices(values))) {
        ASSERT_EQ(contents<float>(sum.tensor(1)), Floats{2 * number});
      }
    }
  };
  std::thread other([&] { repeat(1); });
  repeat(2);
  other.join();
}

}  // namespace
}  // namespace onesum
