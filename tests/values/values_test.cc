// docs/semantics.md, rules 1.7, 2.5 and 2.6.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/values.h>
#include <onesum/variable.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

Tensor tensor_on(const char* device, float value = 1) { return Tensor::from<float>({value}, {1}, device); }

IndexedSlices slices_on(const char* device) {
  return {Tensor::from<float>({1, 2}, {1, 2}, device), Tensor::from<std::int64_t>({0}, {1}, device),
          Shape{5, 2}};
}

std::vector<std::string> names(std::span<const Device> devices) {
  std::vector<std::string> result;
  for (const Device& device : devices) result.push_back(device.to_string());
  return result;
}
using Names = std::vector<std::string>;

// 2.5
TEST(PerReplica, HasItsComponentsInReplicaOrder) {
  const PerReplica value(std::vector<Tensor>{tensor_on("CPU:1", 10), tensor_on("CPU:0", 20)});
  EXPECT_EQ(value.size(), 2U);
  EXPECT_EQ(value.tensor(0).data<float>()[0], 10);
  EXPECT_EQ(value.tensor(1).data<float>()[0], 20);
  EXPECT_EQ(names(value.devices()), (Names{"/device:CPU:1", "/device:CPU:0"}));
}

TEST(PerReplica, MixesDenseAndSparse) {
  const PerReplica value(std::vector<Value>{tensor_on("CPU:0"), slices_on("CPU:1")});
  EXPECT_EQ(names(value.devices()), (Names{"/device:CPU:0", "/device:CPU:1"}));
  EXPECT_EQ(value.slices(1).dense_shape, (Shape{5, 2}));
  expect_invalid([&] { value.slices(0); }, {"component 0", "CPU:0", "dense Tensor"});
  expect_invalid([&] { value.tensor(1); }, {"component 1", "CPU:1", "IndexedSlices"});
  expect_invalid([&] { value.value(2); }, {"component 2", "has 2"});
}

TEST(PerReplica, OneReplicaMayBeGivenAsItIs) {
  const auto components = [](const PerReplica& value) { return value.size(); };
  EXPECT_EQ(components(tensor_on("CPU:0")), 1U);
  EXPECT_EQ(components(slices_on("CPU:0")), 1U);
}

TEST(PerReplica, TakesTheCopiesOfAMirrored) {
  const Mirrored mirrored(std::vector<Value>{tensor_on("CPU:0", 3), tensor_on("CPU:1", 3)});
  const PerReplica value = mirrored;
  ASSERT_EQ(value.size(), 2U);
  EXPECT_EQ(value.tensor(1).memory(), mirrored.tensor(1).memory());
}

TEST(DistributedValues, RefuseNothing) {
  expect_invalid([] { PerReplica value(std::vector<Value>{}); }, {"PerReplica", "no components"});
  expect_invalid([] { PerReplica value(std::vector<Tensor>{}); }, {"PerReplica", "no components"});
  expect_invalid([] { Mirrored value({}); }, {"Mirrored", "no components"});
  expect_invalid([] { PerReplica value(std::vector<Tensor>{tensor_on("CPU:0"), Tensor()}); },
                 {"component 1", "refers to nothing"});
  expect_invalid([] { PerReplica value{Tensor()}; }, {"component 0", "refers to nothing"});
  IndexedSlices no_values = slices_on("CPU:0");
  no_values.values = Tensor();
  expect_invalid([&] { PerReplica value(no_values); }, {"component 0", "values"});
  IndexedSlices no_indices = slices_on("CPU:0");
  no_indices.indices = Tensor();
  expect_invalid([&] { Mirrored value(std::vector<Value>{no_indices}); }, {"component 0", "indices"});
}

TEST(Mirrored, WithOneDeviceReadsAsATensor) {
  const Mirrored one(std::vector<Value>{tensor_on("CPU:0", 7)});
  const Tensor& tensor = one;
  EXPECT_EQ(tensor.data<float>()[0], 7);
  const Mirrored two(std::vector<Value>{tensor_on("CPU:0"), tensor_on("CPU:1")});
  expect_invalid([&] { [[maybe_unused]] const Tensor& read = two; }, {"2 components", "tensor(i)"});
  const Mirrored sparse(std::vector<Value>{slices_on("CPU:0")});
  expect_invalid([&] { [[maybe_unused]] const Tensor& read = sparse; }, {"IndexedSlices"});
}

TEST(Value, ItsDeviceIsThatOfItsMemory) {
  EXPECT_EQ(device_of(tensor_on("CPU:4")), Device("CPU:4"));
  EXPECT_EQ(device_of(slices_on("CPU:5")), Device("CPU:5"));
}

// 1.7
TEST(Destination, IsADeviceString) {
  EXPECT_EQ(names(Destination("cpu:1").devices()), Names{"/device:CPU:1"});
  EXPECT_EQ(names(Destination(std::string("/job:w/cpu:1")).devices()), Names{"/job:w/device:CPU:1"});
  EXPECT_EQ(names(Destination(std::string_view("gpu")).devices()), Names{"/device:GPU:*"});
  expect_invalid([] { Destination destination(""); }, {"destination", "empty", "CPU:0"});
  expect_invalid([] { Destination destination("///"); }, {"empty"});
  expect_invalid([] { Destination destination("nowhere"); }, {"nowhere"});
}

TEST(Destination, IsTheDevicesOfAValueInItsOrder) {
  const PerReplica value(std::vector<Tensor>{tensor_on("CPU:2"), tensor_on("CPU:0")});
  EXPECT_EQ(names(Destination(value).devices()), (Names{"/device:CPU:2", "/device:CPU:0"}));
  const Mirrored mirrored(std::vector<Value>{slices_on("CPU:3"), tensor_on("CPU:1")});
  EXPECT_EQ(names(Destination(mirrored).devices()), (Names{"/device:CPU:3", "/device:CPU:1"}));
}

TEST(Destination, IsTheDeviceOfATensor) {
  EXPECT_EQ(names(Destination(tensor_on("CPU:6")).devices()), Names{"/device:CPU:6"});
  EXPECT_EQ(names(Destination(slices_on("CPU:6")).devices()), Names{"/device:CPU:6"});
  expect_invalid([] { Destination destination{Tensor()}; }, {"destination", "refers to nothing"});
  expect_invalid([] { Destination destination{IndexedSlices()}; }, {"destination", "refer to nothing"});
}

// 1.7, 2.6
TEST(Destination, IsTheDevicesOfAVariableWhichStaysAsItIs) {
  const std::vector<Device> devices = {"CPU:1", "CPU:0"};
  const MirroredVariable variable("weights", tensor_on("CPU:0", 5), devices);
  const Destination destination = variable;
  EXPECT_EQ(destination.devices().size(), 2U);
  EXPECT_EQ(variable.components()[0].data<float>()[0], 5);
}

TEST(PerReplica, TakesTheCopiesOfAVariable) {
  const std::vector<Device> devices = {"CPU:0", "CPU:1"};
  const MirroredVariable variable("weights", tensor_on("CPU:0", 5), devices);
  const PerReplica value = variable;
  ASSERT_EQ(value.size(), 2U);
  EXPECT_EQ(value.tensor(1).data<float>()[0], 5);
}

TEST(DistributedValues, AMovedFromOneIsNoDestination) {
  PerReplica value(tensor_on("CPU:0"));
  const PerReplica taken = std::move(value);
  expect_invalid([&] { Destination destination(value); }, {"no devices"});  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace onesum
