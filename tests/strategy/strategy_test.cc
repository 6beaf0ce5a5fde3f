// Making strategies, and their calls in cross-replica context.
#include "api/engines.h"
#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class StrategyDevices : public StrategyTest {};
class StrategyReduce : public StrategyTest {};

TEST_F(StrategyDevices, AreCompletedInTheOrderGiven) {
  const MirroredStrategy strategy({"CPU:1", "/job:localhost/cpu:0"});
  ASSERT_EQ(strategy.num_replicas(), 2);
  EXPECT_EQ(strategy.devices()[0].to_string(), "/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(strategy.devices()[1].to_string(), "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST_F(StrategyDevices, NoneGivenAreAsManyAsUsableCores) {
  const MirroredStrategy strategy;
  ASSERT_EQ(strategy.num_replicas(), static_cast<int>(api::host_engine().threads()));
  EXPECT_EQ(strategy.devices()[0], Device("CPU:0").canonical());
}

TEST_F(StrategyDevices, TwoEqualOnesAreRefused) {
  EXPECT_THAT(error_of([] { MirroredStrategy strategy({"CPU:0", "CPU:1", "/job:localhost/CPU:0"}); }),
              IsError(ErrorCode::kInvalidArgument,
                      AllOf(HasSubstr("devices 0 (\"CPU:0\") and 2 (\"/job:localhost/CPU:0\")"),
                            HasSubstr("/job:localhost/replica:0/task:0/device:CPU:0"))));
}

TEST_F(StrategyDevices, WhatIsNoDeviceIsRefused) {
  EXPECT_THAT(error_of([] { MirroredStrategy strategy({"CPU:0", "CPU:x"}); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("CPU:x")));
  EXPECT_THAT(error_of([] { MirroredStrategy strategy({"CPU:0", ""}); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("device 1 is empty")));
}

TEST_F(StrategyReduce, GivesTheSumOrMeanOnTheHost) {
  MirroredStrategy strategy({"CPU:1", "CPU:2"});
  const PerReplica value = strategy.run([](ReplicaContext& replica) {
    return scalar(static_cast<float>(replica.replica_id() + 1), replica.device());
  });
  const Mirrored sum = strategy.reduce(ReduceOp::kSum, value);
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_EQ(sum.devices()[0].canonical(), Device("CPU:0").canonical());
  const Tensor& read_as_tensor = sum;
  EXPECT_EQ(number(read_as_tensor), 3);
  EXPECT_EQ(number(strategy.reduce(ReduceOp::kMean, value)), 1.5F);
}

TEST_F(StrategyReduce, UsesTheOpsGiven) {
  int calls = 0;
  auto ops = std::make_unique<ReductionToOneDevice>("CPU:3", [&calls](std::span<const Tensor> parts) {
    ++calls;
    return scalar(number(parts[0]) * number(parts[1]), parts[0].device());
  });
  CrossDeviceOps* const given = ops.get();
  MirroredStrategy strategy(cpus(2), std::move(ops));
  EXPECT_EQ(&strategy.cross_device_ops(), given);
  const PerReplica value(std::vector<Tensor>{scalar(3, "CPU:0"), scalar(5, "CPU:1")});
  EXPECT_EQ(number(strategy.reduce(ReduceOp::kSum, value)), 15);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(strategy.cross_device_ops().last_call().tensors, 1u);
}

// Value A: replica i holds i, B: i + 1. D1: the same devices, D2: a Mirrored on CPU:0, D3: the string
// "CPU:0".
class ReduceMatrix : public ReplicasTest {};

TEST_P(ReduceMatrix, ReduceToAndBatchReduceToGiveTheNumbersInOrder) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  std::vector<Tensor> as;
  std::vector<Tensor> bs;
  for (int i = 0; i < n; ++i) {
    as.push_back(scalar(static_cast<float>(i), strategy.devices()[i]));
    bs.push_back(scalar(static_cast<float>(i + 1), strategy.devices()[i]));
  }
  const PerReplica a(as);
  const PerReplica b(bs);
  const Mirrored on_host(std::vector<Value>{scalar(0, "CPU:0")});
  const std::vector<Destination> destinations = {a, on_host, "CPU:0"};
  const auto expect = [](const Mirrored& result, const Destination& destination, float value) {
    ASSERT_EQ(result.size(), destination.devices().size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      EXPECT_EQ(result.devices()[i].canonical(), destination.devices()[i].canonical());
      EXPECT_FLOAT_EQ(number(result.tensor(i)), value);
    }
  };
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const float sum_of_a = static_cast<float>(n * (n - 1)) / 2;
    const float divisor = op == ReduceOp::kMean ? static_cast<float>(n) : 1;
    const float of_a = sum_of_a / divisor;
    const float of_b = (sum_of_a + static_cast<float>(n)) / divisor;
    for (const Destination& x : destinations) {
      expect(strategy.extended().reduce_to(op, a, x), x, of_a);
      for (const Destination& y : destinations) {
        const std::vector<ValueDestination> pairs = {{a, x}, {b, y}};
        const std::vector<Mirrored> results = strategy.extended().batch_reduce_to(op, pairs);
        ASSERT_EQ(results.size(), 2u);
        expect(results[0], x, of_a);
        expect(results[1], y, of_b);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Replicas, ReduceMatrix, testing::Values(1, 2, 3, 4, 7));

TEST_F(StrategyReduce, BroadcastToCopiesToEveryDestination) {
  MirroredStrategy strategy({"CPU:2", "CPU:0", "CPU:1"});
  Tensor one = scalar(1, "CPU:5");
  const PerReplica like(std::vector<Tensor>{scalar(0, "CPU:2"), scalar(0, "CPU:0"), scalar(0, "CPU:1")});
  const Mirrored copies = strategy.extended().broadcast_to(one, like);
  ASSERT_EQ(copies.size(), 3u);
  one.data<float>()[0] = 2;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(copies.devices()[i].canonical(), strategy.devices()[i]);
    EXPECT_EQ(number(copies.tensor(i)), 1);
  }
}

TEST_F(StrategyReduce, AMirroredVariableIsAValueAndADestination) {
  MirroredStrategy strategy(cpus(2));
  const auto scope = strategy.scope();
  const Variable variable("v", scalar(1, "CPU:0"));
  const Mirrored mean = strategy.extended().reduce_to(ReduceOp::kMean, variable, variable);
  EXPECT_THAT(numbers(mean.tensor(0)), ElementsAre(1));
  EXPECT_THAT(numbers(mean.tensor(1)), ElementsAre(1));
  const Mirrored sum = strategy.extended().reduce_to(ReduceOp::kSum, variable, variable);
  EXPECT_THAT(numbers(sum.tensor(1)), ElementsAre(2));
  EXPECT_THAT(numbers(variable.value()), ElementsAre(1));
}

}  // namespace
}  // namespace onesum
