// ReplicaContext::all_reduce where all replicas make the same call.
#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class AllReduce : public StrategyTest {};
class AllReduceReplicas : public ReplicasTest {};

TEST_P(AllReduceReplicas, GivesEveryReplicaTheSumOrMean) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  strategy.run([&](ReplicaContext& replica) {
    const auto id = static_cast<float>(replica.replica_id());
    const Tensor value = tensor_of({id, 1, -id}, replica.device());
    const Tensor sum = replica.all_reduce(ReduceOp::kSum, value);
    const float total = static_cast<float>(n * (n - 1)) / 2;
    EXPECT_THAT(numbers(sum), ElementsAre(total, static_cast<float>(n), -total));
    EXPECT_EQ(sum.device(), replica.device());
    EXPECT_NE(sum.memory(), value.memory());
    EXPECT_THAT(numbers(value), ElementsAre(id, 1, -id));
    const Tensor mean = replica.all_reduce(ReduceOp::kMean, value);
    EXPECT_FLOAT_EQ(numbers(mean)[0], total / static_cast<float>(n));
    EXPECT_EQ(numbers(mean)[1], 1);
  });
}

TEST_P(AllReduceReplicas, TakesEveryOperation) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  strategy.run([&](ReplicaContext& replica) {
    const auto id = static_cast<float>(replica.replica_id());
    const Tensor value = tensor_of({id, -id, 2}, replica.device());
    const auto last = static_cast<float>(n - 1);
    EXPECT_THAT(numbers(replica.all_reduce(ReduceOp::kMax, value)), ElementsAre(last, 0, 2));
    EXPECT_THAT(numbers(replica.all_reduce(ReduceOp::kMin, value)), ElementsAre(0, -last, 2));
    EXPECT_EQ(numbers(replica.all_reduce(ReduceOp::kProduct, value))[2], static_cast<float>(1 << n));
    const bool flag = replica.replica_id() == 0;
    const Tensor flags = Tensor::from<bool>({flag, true}, {2}, replica.device());
    const Tensor any = replica.all_reduce(ReduceOp::kBitOr, flags);
    const Tensor all = replica.all_reduce(ReduceOp::kBitAnd, flags);
    EXPECT_TRUE(any.data<bool>()[0] && any.data<bool>()[1] && all.data<bool>()[1]);
    EXPECT_EQ(all.data<bool>()[0], n == 1);
  });
}

TEST_P(AllReduceReplicas, PermutedDevicesKeepTheOrderOfReplicas) {
  const int n = GetParam();
  std::vector<std::string> names = cpus(n);
  std::ranges::reverse(names);
  MirroredStrategy strategy(names);
  const PerReplica sums = strategy.run([&](ReplicaContext& replica) {
    EXPECT_EQ(replica.device(), Device(names[replica.replica_id()]).canonical());
    const auto id = static_cast<float>(replica.replica_id());
    return replica.all_reduce(ReduceOp::kSum, tensor_of({id, id + 1}, replica.device()));
  });
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(sums.devices()[i].canonical(), strategy.devices()[i]);
    EXPECT_THAT(numbers(sums.tensor(i)), ElementsAre(n * (n - 1) / 2, n * (n + 1) / 2));
  }
}
INSTANTIATE_TEST_SUITE_P(Replicas, AllReduceReplicas, testing::Values(1, 2, 3, 4, 7));

TEST_F(AllReduce, AListIsOneBatchReduceInItsOrder) {
  MirroredStrategy strategy(cpus(3));
  strategy.run([&](ReplicaContext& replica) {
    std::vector<Tensor> values;
    for (int i = 0; i < 10; ++i)
      values.push_back(tensor_of(std::vector<float>(i, static_cast<float>(i)), replica.device()));
    const std::vector<Tensor> sums = replica.all_reduce(ReduceOp::kSum, values);
    ASSERT_EQ(sums.size(), values.size());
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(numbers(sums[i]), std::vector<float>(i, static_cast<float>(3 * i)));
  });
  EXPECT_EQ(strategy.cross_device_ops().last_call().number, 1u);
  EXPECT_EQ(strategy.cross_device_ops().last_call().tensors, 10u);
}

TEST_F(AllReduce, TakesBracesEmptyListsAndMixedTypes) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([](ReplicaContext& replica) {
    const Device& device = replica.device();
    const Tensor floats = tensor_of({1, 2}, device);
    const Tensor integers = Tensor::from<std::int32_t>({1 + replica.replica_id()}, {1}, device);
    const std::vector<Tensor> means = replica.all_reduce(ReduceOp::kMean, {floats, integers});
    ASSERT_EQ(means.size(), 2u);
    EXPECT_THAT(numbers(means[0]), ElementsAre(1, 2));
    ASSERT_EQ(means[1].dtype(), DType::kFloat64);
    EXPECT_EQ(means[1].data<double>()[0], 1.5);
    EXPECT_TRUE(replica.all_reduce(ReduceOp::kSum, std::vector<Tensor>()).empty());
  });
}

TEST_F(AllReduce, SlicesMayDifferInRows) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([](ReplicaContext& replica) {
    const Device& device = replica.device();
    const IndexedSlices first = {Tensor::from<float>({1, 2}, {1, 2}, device),
                                 Tensor::from<std::int64_t>({1}, {1}, device), Shape({5, 2})};
    const IndexedSlices second = {Tensor::from<float>({3, 4, 5, 6}, {2, 2}, device),
                                  Tensor::from<std::int64_t>({1, 3}, {2}, device), Shape({5, 2})};
    const IndexedSlices& mine = replica.replica_id() == 0 ? first : second;
    const IndexedSlices mean = replica.all_reduce(ReduceOp::kMean, mine);
    EXPECT_THAT(numbers(mean.values), ElementsAre(0.5, 1, 1.5, 2, 2.5, 3));
    const auto indices = mean.indices.data<std::int64_t>();
    EXPECT_THAT(std::vector(indices.begin(), indices.end()), ElementsAre(1, 1, 3));
    EXPECT_EQ(mean.dense_shape, Shape({5, 2}));
    EXPECT_EQ(mean.values.device().canonical(), device);

    const std::vector<Value> both =
        replica.all_reduce(ReduceOp::kSum, std::vector<Value>{scalar(1, device), mine});
    EXPECT_EQ(number(std::get<Tensor>(both[0])), 2);
    EXPECT_EQ(std::get<IndexedSlices>(both[1]).values.shape(), Shape({3, 2}));
  });
}

TEST_F(AllReduce, OfAMirroredVariableSumsItsComponents) {
  MirroredStrategy strategy(cpus(2));
  const auto scope = strategy.scope();
  const Variable variable("v", scalar(1, "CPU:0"));
  const PerReplica sums = strategy.run(
      [&](ReplicaContext& replica) { return replica.all_reduce(ReduceOp::kSum, variable.value()); });
  EXPECT_EQ(number(sums.tensor(0)), 2);
  EXPECT_EQ(number(sums.tensor(1)), 2);
  EXPECT_EQ(number(variable.value()), 1);
}

TEST_F(AllReduce, PartialDevicesAreTheReplicasOwn) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([](ReplicaContext& replica) {
    const std::string name = "CPU:" + std::to_string(replica.replica_id());
    EXPECT_EQ(number(replica.all_reduce(ReduceOp::kSum, scalar(1, name))), 2);
  });
}

TEST_F(AllReduce, AValueElsewhereIsRefused) {
  MirroredStrategy strategy(cpus(3));
  ErrorLog log(strategy);
  const auto all_on_cpu_1 = [&] {
    strategy.run([&](ReplicaContext& replica) {
      log.record(replica, [&] { return replica.all_reduce(ReduceOp::kSum, scalar(1, "CPU:1")); });
    });
  };
  EXPECT_THAT(error_of(all_on_cpu_1),
              IsError(ErrorCode::kInvalidArgument,
                      AllOf(HasSubstr("all_reduce of replica 0: value 0 is on /device:CPU:1"),
                            HasSubstr("/job:localhost/replica:0/task:0/device:CPU:0"))));
  EXPECT_THAT(log.of(1).value(),
              IsError(ErrorCode::kAborted, HasSubstr("threw invalid_argument: all_reduce of replica")));
  EXPECT_THAT(error_of([&] {
                strategy.run([](ReplicaContext& replica) { replica.all_reduce(ReduceOp::kSum, Tensor()); });
              }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("value 0 refers to nothing")));
}

TEST_F(AllReduce, AnErrorOfTheCallItselfReachesAllAndLetsThemGoOn) {
  MirroredStrategy strategy(cpus(3));
  const PerReplica sums = strategy.run([](ReplicaContext& replica) {
    const Tensor flag = Tensor::from<bool>({true}, {1}, replica.device());
    EXPECT_THAT(error_of([&] { replica.all_reduce(ReduceOp::kSum, flag); }),
                IsError(ErrorCode::kInvalidArgument, HasSubstr("bool")));
    return replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device()));
  });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(number(sums.tensor(i)), 3);
}

TEST_F(AllReduce, BadOptionsAndOpsAreRefusedBeforeTheReplicasMeet) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([](ReplicaContext& replica) {
    const Tensor value = scalar(1, replica.device());
    EXPECT_THAT(error_of([&] { replica.all_reduce(static_cast<ReduceOp>(99), value); }),
                IsError(ErrorCode::kInvalidArgument, testing::_));
    EXPECT_THAT(error_of([&] { replica.all_reduce(ReduceOp::kSum, value, in(0ms)); }),
                IsError(ErrorCode::kInvalidArgument, HasSubstr("timeout")));
    EXPECT_EQ(number(replica.all_reduce(ReduceOp::kSum, value, in(1h))), 2);
    EXPECT_EQ(number(replica.all_reduce(ReduceOp::kSum, value, in(std::chrono::milliseconds::max()))), 2);
  });
}

// All orders of arrival that sleeping can provoke give the same bits: the order of additions is that of
// replicas.
TEST_F(AllReduce, TheOrderOfArrivalDoesNotMatter) {
  MirroredStrategy strategy(cpus(3));
  const std::vector<float> parts = {1e8F, 1, -1e8F};
  for (int late = 0; late < 3; ++late) {
    const PerReplica sums = strategy.run([&](ReplicaContext& replica) {
      if (replica.replica_id() == late) std::this_thread::sleep_for(5ms);
      return replica.all_reduce(ReduceOp::kSum, scalar(parts[replica.replica_id()], replica.device()));
    });
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(number(sums.tensor(i)), 0);
  }
}

}  // namespace
}  // namespace onesum
