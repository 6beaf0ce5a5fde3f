// docs/semantics.md, 9.2. The core matrix of reductions and broadcasts: values A (replica i holds i) and B (i
// + 1), SUM and MEAN, to the same devices, to a Mirrored on CPU:0 and to the string "CPU:0", one by one and
// in batches of two.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::devices_of;
using testing::scalar;

// The sum of all components, as a user would write it.
Tensor add_all(std::span<const Tensor> components) {
  std::vector<float> sum(components.front().shape().elements());
  for (const Tensor& component : components) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += component.data<float>()[i];
  }
  return Tensor::from<float>(std::span<const float>(sum), components.front().shape(),
                             components.front().device());
}

std::unique_ptr<CrossDeviceOps> make_ops(const std::string& variant) {
  if (variant == "plain") return std::make_unique<ReductionToOneDevice>();
  if (variant == "to_cpu0") return std::make_unique<ReductionToOneDevice>("CPU:0");
  if (variant == "to_another") return std::make_unique<ReductionToOneDevice>("/device:CPU:99");
  if (variant == "nccl_1_pack") return std::make_unique<AllReduceCrossDeviceOps>("nccl", 1);
  if (variant == "nccl_0_packs") return std::make_unique<AllReduceCrossDeviceOps>("nccl", 0);
  if (variant == "nccl_default") return std::make_unique<NcclAllReduce>();
  if (variant == "hierarchical_copy_8_packs") return std::make_unique<HierarchicalCopyAllReduce>(8);
  if (variant == "hierarchical_copy_small") {
    return std::make_unique<AllReduceCrossDeviceOps>("hierarchical_copy", 0, 100, 10);
  }
  return std::make_unique<ReductionToOneDevice>(std::nullopt, add_all);
}

using Parameters = std::tuple<std::string, std::size_t>;

class CoreMatrix : public ::testing::TestWithParam<Parameters> {
 protected:
  std::size_t n() const { return std::get<1>(GetParam()); }

  PerReplica value(float first) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < n(); ++i)
      tensors.push_back(scalar(first + static_cast<float>(i), cpus(i + 1).back()));
    return PerReplica(std::move(tensors));
  }

  // D1, D2, D3.
  std::vector<Destination> destinations() const {
    std::vector<Value> same;
    for (const std::string& device : cpus(n())) same.emplace_back(scalar(-1.0F, device));
    return {Mirrored(same), Mirrored({scalar(-1.0F, "CPU:0")}), "CPU:0"};
  }

  float expected(ReduceOp op, float first) const {
    const auto count = static_cast<float>(n());
    const float sum = count * (count - 1) / 2 + first * count;
    return op == ReduceOp::kSum ? sum : sum / count;
  }

  static void expect_holds(const Mirrored& result, float number, const Destination& destination) {
    std::vector<Device> devices;
    for (const Device& device : destination.devices()) devices.push_back(device.canonical());
    EXPECT_EQ(devices_of(result), devices);
    for (std::size_t d = 0; d < result.size(); ++d) {
      EXPECT_EQ(result.tensor(d).shape(), Shape());
      EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{number});
    }
  }

  std::unique_ptr<CrossDeviceOps> ops_ = make_ops(std::get<0>(GetParam()));
};

constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};

// 9.2, 5.3
TEST_P(CoreMatrix, Reduce) {
  for (const ReduceOp op : kBoth) {
    for (const Destination& destination : destinations()) {
      expect_holds(ops_->reduce(op, value(0), destination), expected(op, 0), destination);
      expect_holds(ops_->reduce(op, value(1), destination), expected(op, 1), destination);
    }
  }
}

// 9.2, 5.4
TEST_P(CoreMatrix, BatchReduceToAllPairsOfDestinations) {
  for (const ReduceOp op : kBoth) {
    for (const Destination& x : destinations()) {
      for (const Destination& y : destinations()) {
        const std::vector<ValueDestination> pairs{{value(0), x}, {value(1), y}};
        const std::vector<Mirrored> results = ops_->batch_reduce(op, pairs);
        ASSERT_EQ(results.size(), 2U);
        expect_holds(results[0], expected(op, 0), x);
        expect_holds(results[1], expected(op, 1), y);
      }
    }
  }
}

// 5.5
TEST_P(CoreMatrix, Broadcast) {
  for (const Destination& destination : destinations()) {
    expect_holds(ops_->broadcast(scalar(1.0F, "CPU:0"), destination), 1.0F, destination);
    expect_holds(ops_->broadcast(scalar(1.0F, "CPU:5"), destination), 1.0F, destination);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CoreMatrix,
    ::testing::Combine(::testing::Values("plain", "to_cpu0", "to_another", "accumulation_fn", "nccl_1_pack",
                                         "nccl_0_packs", "nccl_default", "hierarchical_copy_8_packs",
                                         "hierarchical_copy_small"),
                       ::testing::Values(1, 2, 3, 4, 7)),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param)); });

// 5.2
TEST(Destinations, ResultsComeInTheirOrder) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::scalars<float>({1, 2, 3});
  const std::vector<std::string> orders[] = {
      {"CPU:2", "CPU:0", "CPU:1"}, {"CPU:1"}, {"CPU:4", "CPU:0"}, {"CPU:7", "CPU:8", "CPU:9", "CPU:2"}};
  for (const auto& order : orders) {
    const PerReplica model = testing::blank_results(ReduceOp::kSum, value, order);
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, model);
    EXPECT_EQ(devices_of(result), devices_of(model));
    for (std::size_t d = 0; d < result.size(); ++d)
      EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{6});
  }
}

// 1.7, 5.2
TEST(Destinations, AreNeverWrittenNorAliased) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::scalars<float>({1, 2});
  const PerReplica other = testing::scalars<float>({10, 20});
  const Tensor tensor = scalar(5.0F, "CPU:1");
  const Mirrored a = ops.reduce(ReduceOp::kSum, value, other);
  const Mirrored b = ops.reduce(ReduceOp::kSum, value, tensor);
  const Mirrored c = ops.reduce(ReduceOp::kSum, value, value);
  const Mirrored alone = ops.reduce(ReduceOp::kSum, PerReplica(tensor), tensor);
  EXPECT_EQ(contents<float>(other.tensor(0)), std::vector<float>{10});
  EXPECT_EQ(contents<float>(other.tensor(1)), std::vector<float>{20});
  EXPECT_EQ(contents<float>(tensor), std::vector<float>{5});
  EXPECT_EQ(contents<float>(value.tensor(0)), std::vector<float>{1});
  EXPECT_EQ(contents<float>(value.tensor(1)), std::vector<float>{2});
  EXPECT_EQ(devices_of(b), std::vector<Device>{Device("CPU:1").canonical()});
  for (std::size_t d = 0; d < 2; ++d) EXPECT_NE(c.tensor(d).memory(), value.tensor(d).memory());
  EXPECT_NE(c.tensor(0).memory(), c.tensor(1).memory());
  EXPECT_NE(alone.tensor(0).memory(), tensor.memory());
  EXPECT_EQ(contents<float>(alone), std::vector<float>{5});
}

// 2.5
TEST(Destinations, AMirroredOfOneDeviceReadsAsATensor) {
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kMean, testing::scalars<float>({1, 2}), "CPU:1");
  const Tensor& tensor = result;
  EXPECT_EQ(contents<float>(tensor), std::vector<float>{1.5F});
}

// 1.4
TEST(Devices, MayBeSpeltInAnyWay) {
  ReductionToOneDevice ops("cpu:0");
  const PerReplica value(std::vector<Tensor>{scalar(1.0F, "/cpu:0"), scalar(2.0F, testing::full_name(1)),
                                             scalar(4.0F, "/job:localhost/device:CPU:2")});
  const Mirrored result = ops.reduce(ReduceOp::kSum, value, value);
  EXPECT_EQ(devices_of(result), devices_of(value));
  EXPECT_EQ(contents<float>(result.tensor(2)), std::vector<float>{7});
}

// 5.4, 8.25
TEST(Batches, ThatAreEmptyGiveNothing) {
  ReductionToOneDevice ops;
  EXPECT_TRUE(ops.batch_reduce(ReduceOp::kSum, {}).empty());
  EXPECT_TRUE(ops.batch_reduce_async(ReduceOp::kMean, {}).results().empty());
  ops.batch_reduce_into(ReduceOp::kSum, {}, {});
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, {}, {});
  prepared.run();
  prepared.start().wait();
  EXPECT_EQ(ops.last_call().number, 0U);
}

}  // namespace
}  // namespace onesum
