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

#include "conformance/dense_checks.h"
#include "conformance/pack_checks.h"
#include "conformance/sparse_checks.h"
#include "conformance/worker_checks.h"
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

// Sections 2 to 5: one or several workers of one or two devices.
TEST_F(Workers, KnownValues) {
  for (const Layout& layout : {Layout{1, 1}, Layout{2, 1}, Layout{1, 2}, Layout{2, 2}, Layout{4, 1}}) {
    for (const AllReduceSpecs& specs : some_specs()) {
      SCOPED_TRACE(specs.to_string() + " on " + layout.name());
      MultiWorkerAllReduce ops(worker_names(layout.workers), layout.devices, specs);
      const testing::Stage stage(testing::device_names(layout), device_name(0, 0));
      testing::check_dense(ops, stage);
      testing::check_sparse(ops, stage);
    }
  }
}

// 6.6
TEST_F(Workers, AlgorithmsAreEquivalent) { testing::check_equivalence("CPU"); }

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
  for (const char* algorithm : {"rechd", "pscpu", "direct", "hierarchical_copy", "nccl", "pscpu/pscpu"}) {
    testing::check_canonical_order("CPU", algorithm);
  }
  testing::check_order_of_ring("CPU");
}

// 6.3
TEST_F(Workers, GroupsOfSmallTensorsUnderARing) { testing::check_groups_under_ring(cpus(3)); }

// 3.1, 3.2, 5.4, 8.5, 8.10: the same rules as everywhere.
TEST_F(Workers, CommonRulesHoldInEveryClass) {
  for (const Ops& ops : local_classes()) {
    EXPECT_TRUE(ops->batch_reduce(ReduceOp::kSum, {}).empty());
    const PerReplica one = testing::scalars<float>({1});
    const auto wrong = static_cast<ReduceOp>(99);
    expect_invalid([&] { ops->reduce(wrong, one, one); }, {"99"});
    expect_invalid([&] { ops->batch_reduce(wrong, {}); }, {"99"});
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
