// MirroredStrategy::run: replicas, their threads and what they return.
#include <atomic>
#include <set>
#include <thread>

#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Run : public StrategyTest {};
class RunReplicas : public ReplicasTest {};

TEST_P(RunReplicas, CallsTheFunctionOncePerReplica) {
  MirroredStrategy strategy(cpus(GetParam()));
  std::vector<int> calls(GetParam(), 0);
  strategy.run([&](ReplicaContext& replica) {
    ++calls[replica.replica_id()];
    EXPECT_EQ(replica.num_replicas(), GetParam());
    EXPECT_EQ(&replica.strategy(), &strategy);
    EXPECT_EQ(replica.device(), strategy.devices()[replica.replica_id()]);
  });
  EXPECT_THAT(calls, testing::Each(1));
}

TEST_P(RunReplicas, UsesOneThreadPerReplicaAgainAndAgain) {
  MirroredStrategy strategy(cpus(GetParam()));
  std::vector<std::set<std::thread::id>> threads(GetParam());
  for (int i = 0; i < 20; ++i) {
    strategy.run(
        [&](ReplicaContext& replica) { threads[replica.replica_id()].insert(std::this_thread::get_id()); });
  }
  std::set<std::thread::id> all = {std::this_thread::get_id()};
  for (const auto& of_replica : threads) {
    EXPECT_EQ(of_replica.size(), 1u);
    all.insert(of_replica.begin(), of_replica.end());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(GetParam() + 1));
}

TEST_P(RunReplicas, ReturnsOneComponentPerReplicaInItsOrder) {
  MirroredStrategy strategy(cpus(GetParam()));
  const PerReplica result = strategy.run([](ReplicaContext& replica) {
    std::this_thread::sleep_for(std::chrono::milliseconds(replica.num_replicas() - replica.replica_id()));
    return scalar(static_cast<float>(replica.replica_id()), replica.device());
  });
  ASSERT_EQ(result.size(), static_cast<std::size_t>(GetParam()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    EXPECT_EQ(number(result.tensor(i)), static_cast<float>(i));
    EXPECT_EQ(result.devices()[i], strategy.devices()[i]);
  }
}
INSTANTIATE_TEST_SUITE_P(Replicas, RunReplicas, testing::Values(1, 2, 3, 4, 7));

TEST_F(Run, AllReplicasRunAtTheSameTime) {
  MirroredStrategy strategy(cpus(4));
  std::atomic<int> present = 0;  // relaxed would do: nothing else is published by it
  strategy.run([&](ReplicaContext&) {
    ++present;
    while (present < 4) std::this_thread::yield();
  });
  EXPECT_EQ(present, 4);
}

TEST_F(Run, TakesSlicesAndValuesToo) {
  MirroredStrategy strategy(cpus(2));
  const PerReplica result = strategy.run([](ReplicaContext& replica) -> Value {
    const Device& device = replica.device();
    if (replica.replica_id() == 0) return scalar(7, device);
    return IndexedSlices{
        Tensor::from<float>({1, 2}, {1, 2}, device), Tensor::from<std::int32_t>({3}, {1}, device), {}};
  });
  EXPECT_EQ(number(result.tensor(0)), 7);
  EXPECT_THAT(numbers(result.slices(1).values), ElementsAre(1, 2));
}

TEST_F(Run, AResultElsewhereIsRefused) {
  MirroredStrategy strategy(cpus(3));
  const auto all_on_the_host = [&] { strategy.run([](ReplicaContext&) { return scalar(1, "CPU:0"); }); };
  EXPECT_THAT(error_of(all_on_the_host),
              IsError(ErrorCode::kInvalidArgument,
                      AllOf(HasSubstr("replica 1 returned"), HasSubstr("is on /device:CPU:0"),
                            HasSubstr("task:0/device:CPU:1"))));
  EXPECT_THAT(error_of([&] { strategy.run([](ReplicaContext&) { return Tensor(); }); }),
              IsError(ErrorCode::kInvalidArgument,
                      HasSubstr("replica 0 returned to MirroredStrategy::run refers to")));
}

TEST_F(Run, RunsOfOneStrategyTakeTurns) {
  MirroredStrategy strategy(cpus(2));
  std::atomic<int> inside = 0;
  const auto loop = [&] {
    for (int i = 0; i < 50; ++i) {
      strategy.run([&](ReplicaContext& replica) {
        EXPECT_LE(++inside, 2);
        replica.merge_call([](MirroredStrategy&, std::span<const PerReplica>) {});
        --inside;
      });
    }
  };
  std::thread other(loop);
  loop();
  other.join();
}

TEST_F(Run, StrategiesInDifferentThreadsWorkSideBySide) {
  const auto train = [](int replicas) {
    MirroredStrategy strategy(cpus(replicas));
    for (int i = 0; i < 50; ++i) {
      const PerReplica sums = strategy.run([](ReplicaContext& replica) {
        return replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device()));
      });
      for (std::size_t r = 0; r < sums.size(); ++r)
        EXPECT_EQ(number(sums.tensor(r)), static_cast<float>(replicas));
    }
  };
  std::thread other(train, 3);
  train(2);
  other.join();
}

TEST_F(Run, AStrategyThatNeverRanIsDestroyedLikeAnyOther) { const MirroredStrategy strategy(cpus(3)); }

}  // namespace
}  // namespace onesum
