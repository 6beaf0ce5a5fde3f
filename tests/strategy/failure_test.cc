// Replicas that throw, leave early, or make other calls than the rest: the others end too, and say why.
#include <atomic>
#include <functional>

#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::span<const PerReplica>;

struct NoStdException {
  int number = 0;
};

void merge_nothing(ReplicaContext& replica) {
  replica.merge_call([](MirroredStrategy&, Values) {});
}

void reduce_scalar(ReplicaContext& replica, ReduceOp op = ReduceOp::kSum) {
  replica.all_reduce(op, scalar(1, replica.device()));
}

class Failure : public StrategyTest {
 protected:
  // What run throws if `odd` does `otherwise` and the others reduce a scalar; the errors of all are in log_.
  Error run_with_odd(int odd, const std::function<void(ReplicaContext&)>& otherwise) {
    return error_of([&] {
      strategy_.run([&](ReplicaContext& replica) {
        log_.record(replica,
                    [&] { replica.replica_id() == odd ? otherwise(replica) : reduce_scalar(replica); });
      });
    });
  }
  void expect_usable() {
    const PerReplica sums = strategy_.run([](ReplicaContext& replica) {
      return replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device()));
    });
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(number(sums.tensor(i)), 4);
  }

  MirroredStrategy strategy_{cpus(4)};
  ErrorLog log_{strategy_};
};

TEST_F(Failure, AReplicaThatThrowsEndsTheOthers) {
  for (int odd = 0; odd < 4; ++odd) {
    const auto run = [&] { run_with_odd(odd, [](ReplicaContext&) { throw std::runtime_error("boom"); }); };
    EXPECT_THROW(run(), std::runtime_error);
    const std::string name = "replica " + std::to_string(odd);
    for (int other = 0; other < 4; ++other) {
      if (other == odd) continue;
      const std::string waiter = "replica " + std::to_string(other);
      EXPECT_THAT(log_.of(other).value(),
                  IsError(ErrorCode::kAborted,
                          AllOf(HasSubstr(waiter + " waits in all_reduce(SUM, float32 []), its call 1"),
                                HasSubstr(name + " threw std::runtime_error: boom after 0 calls"))));
    }
    expect_usable();
  }
}

TEST_F(Failure, RunRethrowsTheOriginalException) {
  try {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id() == 2) throw std::out_of_range("exactly this");
      reduce_scalar(replica);
    });
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "exactly this");
  }
}

TEST_F(Failure, RunRethrowsThatOfTheLowestReplicaThatFailedByItself) {
  std::atomic<int> thrown = 0;
  try {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id() % 2 == 0) reduce_scalar(replica);  // 0 and 2 are aborted
      if (replica.replica_id() == 1) {
        while (thrown == 0) std::this_thread::yield();  // 3 throws first
      }
      ++thrown;
      throw std::runtime_error(std::to_string(replica.replica_id()));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
}

TEST_F(Failure, ExceptionsOfAnyTypePass) {
  const auto run = [&](auto thrown) {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id() == 3) throw thrown;
      log_.record(replica, [&] { reduce_scalar(replica); });
    });
  };
  EXPECT_THROW(run(17), int);
  EXPECT_THAT(log_.of(0).value(),
              IsError(ErrorCode::kAborted, HasSubstr("replica 3 threw int after 0 calls")));
  EXPECT_THROW(run(NoStdException{4}), NoStdException);
  EXPECT_THAT(log_.of(0).value(), IsError(ErrorCode::kAborted, HasSubstr("NoStdException")));
  EXPECT_THROW(run(Error(ErrorCode::kUnavailable, "gone")), Error);
  EXPECT_THAT(log_.of(0).value(),
              IsError(ErrorCode::kAborted, HasSubstr("replica 3 threw unavailable: gone")));
  expect_usable();
}

TEST_F(Failure, AReplicaThatReturnsEarlyEndsTheOthers) {
  EXPECT_THAT(run_with_odd(1, [](ReplicaContext&) {}),
              IsError(ErrorCode::kAborted, AllOf(HasSubstr("replica 0 waits in all_reduce(SUM, float32 [])"),
                                                 HasSubstr("replica 1 returned after 0 calls"))));
  EXPECT_FALSE(log_.of(1));
  EXPECT_TRUE(log_.of(2) && log_.of(3));
  expect_usable();
}

TEST_F(Failure, AReplicaThatSkipsOneOfManyCallsEndsTheOthers) {
  const auto skip = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      for (int i = 0; i < 10; ++i) {
        if (replica.replica_id() == 2 && i == 5) continue;
        reduce_scalar(replica);
      }
    });
  };
  EXPECT_THAT(error_of(skip),
              IsError(ErrorCode::kAborted, AllOf(HasSubstr("replica 0 waits in"), HasSubstr("its call 10"),
                                                 HasSubstr("replica 2 returned after 9 calls"))));
  expect_usable();
}

TEST_F(Failure, AMergeCallThatOneSkipsEndsTheOthers) {
  const auto skip = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      if (replica.replica_id() != 0) merge_nothing(replica);
    });
  };
  EXPECT_THAT(error_of(skip),
              IsError(ErrorCode::kAborted, AllOf(HasSubstr("replica 1 waits in merge_call(0 values)"),
                                                 HasSubstr("replica 0 returned"))));
}

TEST_F(Failure, ADifferentCallIsNamedBesideTheCommonOne) {
  const std::string common = "all_reduce(SUM, float32 [])";
  const std::vector<std::pair<std::string, std::function<void(ReplicaContext&)>>> others = {
      {"all_reduce(MEAN, float32 [])", [](ReplicaContext& r) { reduce_scalar(r, ReduceOp::kMean); }},
      {"merge_call(0 values)", merge_nothing},
      {"all_reduce(SUM, float32 [2])",
       [](ReplicaContext& r) { r.all_reduce(ReduceOp::kSum, tensor_of({1, 2}, r.device())); }},
      {"all_reduce(SUM, int32 [])",
       [](ReplicaContext& r) {
         r.all_reduce(ReduceOp::kSum, Tensor::from<std::int32_t>({1}, {}, r.device()));
       }},
      {"all_reduce(SUM, 0 values)",
       [](ReplicaContext& r) { r.all_reduce(ReduceOp::kSum, std::vector<Tensor>()); }},
      {"all_reduce(SUM, 2 values: float32 [], float32 [])",
       [](ReplicaContext& r) {
         r.all_reduce(ReduceOp::kSum, {scalar(1, r.device()), scalar(1, r.device())});
       }},
      {"all_reduce(SUM, slices of float32 [4,1])",
       [](ReplicaContext& r) {
         r.all_reduce(ReduceOp::kSum,
                      IndexedSlices{tensor_of({1}, r.device()).reshaped({1, 1}),
                                    Tensor::from<std::int32_t>({0}, {1}, r.device()), Shape({4, 1})});
       }},
      {"all_reduce(SUM, float32 []) with other options",
       [](ReplicaContext& r) {
         CommunicationOptions fast;
         fast.numerics = Numerics::kFast;
         r.all_reduce(ReduceOp::kSum, scalar(1, r.device()), fast);
       }},
  };
  for (const auto& [text, otherwise] : others) {
    for (const int odd : {0, 2}) {
      const std::string found = "replica " + std::to_string(odd) + " called " + text;
      const std::string expected = "where replica " + std::string(odd == 0 ? "1" : "0") + " called " + common;
      EXPECT_THAT(run_with_odd(odd, otherwise),
                  IsError(ErrorCode::kAborted,
                          AllOf(HasSubstr(found), HasSubstr(expected), HasSubstr("call 1 of each"))));
      for (int replica = 0; replica < 4; ++replica) {
        EXPECT_THAT(log_.of(replica).value(), IsError(ErrorCode::kAborted, HasSubstr(found)));
      }
    }
  }
  expect_usable();
}

TEST_F(Failure, InALongListTheFirstValueThatDiffersIsNamed) {
  const auto differ_in_57 = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      std::vector<Tensor> values(100, scalar(1, replica.device()));
      if (replica.replica_id() == 3) values[57] = tensor_of({1, 2, 3}, replica.device());
      replica.all_reduce(ReduceOp::kSum, values);
    });
  };
  EXPECT_THAT(
      error_of(differ_in_57),
      IsError(ErrorCode::kAborted,
              AllOf(HasSubstr("replica 3 called all_reduce(SUM, 100 values) with float32 [3] as value 57"),
                    HasSubstr("replica 0 called all_reduce(SUM, 100 values) with float32 [] as value 57"))));
}

TEST_F(Failure, MergeCallsDifferInTheNumberOfValues) {
  const auto differ = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      std::vector<Tensor> values(replica.replica_id() == 1 ? 2 : 1, scalar(1, replica.device()));
      replica.merge_call([](MirroredStrategy&, Values) { ADD_FAILURE() << "was called"; }, values);
    });
  };
  EXPECT_THAT(error_of(differ),
              IsError(ErrorCode::kAborted, HasSubstr("replica 1 called merge_call(2 values) where "
                                                     "replica 0 called merge_call(1 value)")));
}

TEST_F(Failure, ARunThatFailedStaysFailed) {
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id() == 3) return;
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(error_of([&] { reduce_scalar(replica); }),
                  IsError(ErrorCode::kAborted, HasSubstr("replica 3 returned after 0 calls")));
    }
  });
  expect_usable();
}

TEST_F(Failure, AReplicaThatDoesNotComeInTimeIsNamed) {
  std::atomic<bool> has_given_up = false;
  const auto give_up = [&](ReplicaContext& replica) {
    try {
      replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device()), in(50ms));
    } catch (...) {
      has_given_up = true;
      throw;
    }
  };
  const auto come_late = [&](ReplicaContext& replica) {
    while (!has_given_up) std::this_thread::sleep_for(1ms);
    reduce_scalar(replica);
  };
  const auto run = [&] {
    strategy_.run([&](ReplicaContext& replica) {
      log_.record(replica, [&] {
        if (replica.replica_id() == 0) give_up(replica);
        if (replica.replica_id() == 1) come_late(replica);
        if (replica.replica_id() > 1) reduce_scalar(replica);  // would wait for 30 minutes
      });
    });
  };
  EXPECT_THAT(error_of(run),
              IsError(ErrorCode::kDeadlineExceeded,
                      AllOf(HasSubstr("replica 0 waited 50 ms in all_reduce(SUM, float32 []), but replica"),
                            HasSubstr("1"), HasSubstr("did not make that call"))));
  for (const int other : {1, 2, 3}) {
    EXPECT_THAT(log_.of(other).value(),
                IsError(ErrorCode::kAborted, HasSubstr("replica 0 waited 50 ms in all_reduce")));
  }
  expect_usable();
}

TEST_F(Failure, ALongMergeIsNoReasonToGiveUp) {
  strategy_.run([](ReplicaContext& replica) {
    replica.merge_call([](MirroredStrategy&, Values) { std::this_thread::sleep_for(50ms); });
    reduce_scalar(replica);
  });
}

TEST_F(Failure, ManyFailedRunsInARow) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(run_with_odd(i % 4, [](ReplicaContext&) { throw NoStdException(); }), NoStdException);
  }
  expect_usable();
}

}  // namespace
}  // namespace onesum
