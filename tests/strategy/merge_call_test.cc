// ReplicaContext::merge_call, and what belongs to which context.
#include <thread>

#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::span<const PerReplica>;

class MergeCall : public StrategyTest {};
class Contexts : public StrategyTest {};
class MergeCallReplicas : public ReplicasTest {};

TEST_P(MergeCallReplicas, CallsTheFunctionOnceWithOneComponentPerReplica) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  int calls = 0;
  strategy.run([&](ReplicaContext& replica) {
    const auto id = static_cast<float>(replica.replica_id());
    const Tensor a = scalar(id, replica.device());
    const Tensor b = scalar(-id, replica.device());
    replica.merge_call(
        [&](MirroredStrategy& given, Values values) {
          ++calls;
          EXPECT_EQ(&given, &strategy);
          ASSERT_EQ(values.size(), 2u);
          for (int i = 0; i < n; ++i) {
            EXPECT_EQ(number(values[0].tensor(i)), static_cast<float>(i));
            EXPECT_EQ(number(values[1].tensor(i)), static_cast<float>(-i));
            EXPECT_EQ(values[0].devices()[i], strategy.devices()[i]);
          }
        },
        {a, b});
  });
  EXPECT_EQ(calls, 1);
}

TEST_P(MergeCallReplicas, HandsEachReplicaTheComponentOnItsDevice) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  strategy.run([&](ReplicaContext& replica) {
    const Value mine = replica.merge_call([&](MirroredStrategy&, Values) {
      std::vector<Tensor> backwards;
      for (int i = n - 1; i >= 0; --i)
        backwards.push_back(scalar(static_cast<float>(10 * i), strategy.devices()[i]));
      return PerReplica(backwards);
    });
    EXPECT_EQ(number(std::get<Tensor>(mine)), static_cast<float>(10 * replica.replica_id()));
    EXPECT_EQ(device_of(mine), replica.device());
  });
}

TEST_P(MergeCallReplicas, TrainsAsOnThePages) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  strategy.run([&](ReplicaContext& replica) {
    const std::vector<Tensor> gradients = {tensor_of({1, 2}, replica.device()), scalar(3, replica.device())};
    const std::vector<Value> sums = replica.merge_call(
        [](MirroredStrategy& merging, Values values) {
          std::vector<ValueDestination> pairs;
          for (const PerReplica& value : values) pairs.push_back({value, value});
          return merging.extended().batch_reduce_to(ReduceOp::kSum, pairs);
        },
        gradients);
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(numbers(std::get<Tensor>(sums[0]))[1], static_cast<float>(2 * n));
    EXPECT_EQ(number(std::get<Tensor>(sums[1])), static_cast<float>(3 * n));
    EXPECT_EQ(device_of(sums[0]).canonical(), replica.device());
  });
}
INSTANTIATE_TEST_SUITE_P(Replicas, MergeCallReplicas, testing::Values(1, 2, 3, 4, 7));

TEST_F(MergeCall, AResultOnOneDeviceGoesToAll) {
  MirroredStrategy strategy(cpus(3));
  strategy.run([](ReplicaContext& replica) {
    const Value sum = replica.merge_call(
        [](MirroredStrategy& merging, Values values) { return merging.reduce(ReduceOp::kSum, values[0]); },
        {scalar(2, replica.device())});
    EXPECT_EQ(number(std::get<Tensor>(sum)), 6);
  });
}

TEST_F(MergeCall, AResultThatLacksADeviceIsRefused) {
  MirroredStrategy strategy(cpus(3));
  const auto two_of_three = [&] {
    strategy.run([](ReplicaContext& replica) {
      replica.merge_call([](MirroredStrategy&, Values) {
        return PerReplica(std::vector<Tensor>{scalar(1, "CPU:0"), scalar(1, "CPU:2")});
      });
    });
  };
  EXPECT_THAT(
      error_of(two_of_three),
      IsError(ErrorCode::kInvalidArgument,
              AllOf(HasSubstr("result 0"), HasSubstr("device:CPU:1; it has them on"), HasSubstr("CPU:2"))));
}

TEST_F(MergeCall, WhatItsFunctionThrowsReachesAllReplicas) {
  MirroredStrategy strategy(cpus(3));
  std::vector<std::string> caught(3);
  strategy.run([&](ReplicaContext& replica) {
    try {
      replica.merge_call([](MirroredStrategy&, Values) { throw std::runtime_error("boom"); });
    } catch (const std::runtime_error& error) {
      caught[replica.replica_id()] = error.what();
    }
    replica.merge_call([](MirroredStrategy&, Values) {});
  });
  EXPECT_THAT(caught, testing::Each("boom"));
  const auto uncaught = [&] {
    strategy.run(
        [](ReplicaContext& replica) { replica.merge_call([](MirroredStrategy&, Values) { throw 42; }); });
  };
  EXPECT_THROW(uncaught(), int);
}

TEST_F(MergeCall, IsInTheStrategysScope) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([&](ReplicaContext& replica) {
    replica.merge_call([](MirroredStrategy&, Values) {
      EXPECT_EQ(Variable("made while merging", scalar(0, "CPU:0")).components().size(), 2u);
    });
  });
  EXPECT_FALSE(Variable("made outside", scalar(0, "CPU:0")).is_mirrored());
}

TEST_F(MergeCall, InsideMergeCallIsRefused) {
  MirroredStrategy strategy(cpus(2));
  strategy.run([](ReplicaContext& replica) {
    replica.merge_call([&](MirroredStrategy&, Values) {
      const auto nested = [&] { replica.merge_call([](MirroredStrategy&, Values) {}); };
      EXPECT_THAT(error_of(nested),
                  IsError(ErrorCode::kInvalidArgument, HasSubstr("inside the function of a merge_call")));
      const auto reduce = [&] { replica.all_reduce(ReduceOp::kSum, scalar(1, "CPU:0")); };
      EXPECT_THAT(error_of(reduce),
                  IsError(ErrorCode::kInvalidArgument, HasSubstr("inside the function of a merge_call")));
    });
  });
}

TEST_F(MergeCall, ARunOfTheSameStrategyInsideIsRefusedAndOneOfAnotherWorks) {
  MirroredStrategy outer(cpus(2));
  MirroredStrategy inner(cpus(3));
  outer.run([&](ReplicaContext& replica) {
    replica.merge_call([&](MirroredStrategy&, Values) {
      EXPECT_THAT(
          error_of([&] { outer.run([](ReplicaContext&) {}); }),
          IsError(ErrorCode::kInvalidArgument, HasSubstr("inside merge_call of a run of the same strategy")));
      int around = 0;
      inner.run([&](ReplicaContext& inner_replica) {
        inner_replica.merge_call([&](MirroredStrategy&, Values) {
          EXPECT_THAT(error_of([&] { outer.run([](ReplicaContext&) {}); }),
                      IsError(ErrorCode::kInvalidArgument, HasSubstr("of the same strategy")));
          ++around;
        });
      });
      EXPECT_EQ(around, 1);
    });
  });
}

TEST_F(Contexts, CrossReplicaCallsAreRefusedInReplicas) {
  MirroredStrategy strategy(cpus(2));
  MirroredStrategy other(cpus(2));
  ReductionToOneDevice ops;
  Variable variable("v", scalar(0, "CPU:0"));
  strategy.run([&](ReplicaContext& replica) {
    const PerReplica value = scalar(1, replica.device());
    std::vector<PerReplica> values = {value};
    const std::vector<ValueDestination> pairs = {{value, "CPU:0"}};
    const std::vector<std::pair<std::string, std::function<void()>>> calls = {
        {"MirroredStrategy::run", [&] { strategy.run([](ReplicaContext&) {}); }},
        {"MirroredStrategy::run", [&] { other.run([](ReplicaContext&) {}); }},
        {"MirroredStrategy::reduce", [&] { strategy.reduce(ReduceOp::kSum, value); }},
        {"MirroredStrategy::scope", [&] { const auto scope = strategy.scope(); }},
        {"reduce_to", [&] { strategy.extended().reduce_to(ReduceOp::kSum, value, "CPU:0"); }},
        {"batch_reduce_to", [&] { strategy.extended().batch_reduce_to(ReduceOp::kSum, pairs); }},
        {"broadcast_to", [&] { strategy.extended().broadcast_to(value.value(0), "CPU:0"); }},
        {"variable 'w'", [&] { const Variable made("w", scalar(0, "CPU:0")); }},
        {"reduce", [&] { ops.reduce(ReduceOp::kSum, value, "CPU:0"); }},
        {"batch_reduce", [&] { ops.batch_reduce(ReduceOp::kSum, pairs); }},
        {"broadcast", [&] { ops.broadcast(value.value(0), "CPU:0"); }},
        {"gather", [&] { ops.gather(value, "CPU:0", 0); }},
        {"batch_reduce_into", [&] { ops.batch_reduce_into(ReduceOp::kSum, values, values); }},
        {"batch_reduce_async", [&] { ops.batch_reduce_async(ReduceOp::kSum, pairs).wait(); }},
        {"prepare", [&] { ops.prepare(ReduceOp::kSum, values, values).run(); }},
    };
    for (const auto& [name, call] : calls) {
      const std::string who = "replica " + std::to_string(replica.replica_id());
      EXPECT_THAT(error_of(call),
                  IsError(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr(name), HasSubstr(who), HasSubstr("cross-replica context"),
                                HasSubstr("all_reduce"), HasSubstr("merge_call"))))
          << name;
    }
  });
}

TEST_F(Contexts, CrossReplicaCallsWorkWhileMergingAndAfterwards) {
  MirroredStrategy strategy(cpus(2));
  ReductionToOneDevice ops;
  strategy.run([&](ReplicaContext& replica) {
    replica.merge_call(
        [&](MirroredStrategy&, Values values) {
          EXPECT_EQ(number(ops.reduce(ReduceOp::kSum, values[0], "CPU:0")), 2);
          const auto scope = strategy.scope();
        },
        {scalar(1, replica.device())});
  });
  EXPECT_EQ(number(ops.reduce(ReduceOp::kSum, scalar(4, "CPU:0"), "CPU:0")), 4);
}

TEST_F(Contexts, AReplicaContextBelongsToItsThread) {
  MirroredStrategy strategy(cpus(2));
  std::vector<ReplicaContext*> contexts(2);
  strategy.run([&](ReplicaContext& replica) {
    contexts[replica.replica_id()] = &replica;
    replica.merge_call([](MirroredStrategy&, Values) {});
    ReplicaContext& neighbour = *contexts[1 - replica.replica_id()];
    EXPECT_THAT(error_of([&] { neighbour.all_reduce(ReduceOp::kSum, scalar(1, neighbour.device())); }),
                IsError(ErrorCode::kInvalidArgument, HasSubstr("by another thread")));
  });
  EXPECT_THAT(
      error_of([&] { contexts[0]->merge_call([](MirroredStrategy&, Values) {}); }),
      IsError(ErrorCode::kInvalidArgument, AllOf(HasSubstr("replica 0"), HasSubstr("while its run lasts"))));
}

}  // namespace
}  // namespace onesum
