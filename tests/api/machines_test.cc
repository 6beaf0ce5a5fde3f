// Workers that share machines: how machines are numbered, and that the sums do not depend on them.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "api/machine_numbers.h"
#include "api/study.h"

namespace onesum {
namespace {

using Numbers = std::vector<std::int32_t>;

TEST(MachineNumbers, AreGivenByFirstAppearance) {
  const auto numbers = [](const std::vector<std::string>& texts) { return api::machine_numbers(texts); };
  EXPECT_EQ(numbers({}), Numbers{});
  EXPECT_EQ(numbers({"a", "a", "b", "b"}), (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(numbers({"z", "a", "z", "m", "a"}), (Numbers{0, 1, 0, 2, 1}));
}

// Workers that do not know where they are share nothing.
TEST(MachineNumbers, OfUnknownMachinesAreTheirOwn) {
  EXPECT_EQ(api::machine_numbers(std::vector<std::string>{"", "a", "", "a", ""}), (Numbers{0, 1, 2, 1, 3}));
}

TEST(MachineNumbers, ThatAreEvenDifferByOneAtMost) {
  EXPECT_EQ(api::even_machine_numbers(4, 2), (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(api::even_machine_numbers(5, 3), (Numbers{0, 0, 1, 1, 2}));
  EXPECT_EQ(api::even_machine_numbers(3, 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(api::even_machine_numbers(3, 1), (Numbers{0, 0, 0}));
}

// Embedded workers are on one machine; as if they were on several, only the plan is another.
TEST(Machines, ChangeThePlanAndNotTheSum) {
  std::vector<std::string> names;
  for (int task = 0; task < 5; ++task) names.push_back("/job:worker/task:" + std::to_string(task));
  std::vector<Tensor> tensors;
  for (int replica = 0; replica < 10; ++replica) {
    const Device device(names[static_cast<std::size_t>(replica / 2)] +
                        "/replica:0/device:CPU:" + std::to_string(replica % 2));
    tensors.push_back(Tensor::empty(DType::kFloat32, {20011}, device));
    for (int i = 0; i < 20011; ++i) {
      tensors.back().data<float>()[i] = static_cast<float>((replica + 1) * (i % 97 + 1)) / 7e3F;
    }
  }
  const PerReplica value(tensors);
  const auto result_of = [&](std::size_t machines, bool is_shared) {
    const Cluster cluster = api::embedded_on_machines(names, 2, "CPU", machines);
    MultiWorkerAllReduce ops(names, 2, AllReduceSpecs("auto"), 0, 0, 10, cluster);
    const std::vector<ValueDestination> pairs{{value, Destination(value)}};
    EXPECT_EQ(ops.plan(ReduceOp::kSum, pairs).algorithm() == "nccl/machines", is_shared) << machines;
    const Mirrored sum = ops.reduce(ReduceOp::kSum, value, Destination(value));
    std::vector<float> numbers;
    for (const Value& component : sum.values()) {
      const auto data = std::get<Tensor>(component).data<float>();
      numbers.insert(numbers.end(), data.begin(), data.end());
    }
    return numbers;
  };
  const std::vector<float> expected = result_of(1, false);
  EXPECT_EQ(result_of(2, true), expected);
  EXPECT_EQ(result_of(3, true), expected);
  EXPECT_EQ(result_of(5, false), expected);
}

}  // namespace
}  // namespace onesum
