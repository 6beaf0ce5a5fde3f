// Many runs, calls and failures with varying timing: for hangs, and for the thread sanitizer.
#include <atomic>
#include <random>

#include "strategy/support.h"

namespace onesum {
namespace {

class Stress : public ReplicasTest {};

void dawdle(std::minstd_rand& random) {
  if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
}

TEST_P(Stress, CallsMeetInOrder) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  for (unsigned run = 0; run < 20; ++run) {
    strategy.run([&](ReplicaContext& replica) {
      std::minstd_rand random(run * 100 + replica.replica_id());
      for (int call = 0; call < 20; ++call) {
        dawdle(random);
        const auto number_of_call = static_cast<float>(call);
        const Tensor sum = replica.all_reduce(ReduceOp::kSum, scalar(number_of_call, replica.device()));
        EXPECT_EQ(number(sum), number_of_call * static_cast<float>(n));
        dawdle(random);
        replica.merge_call(
            [&](MirroredStrategy&, std::span<const PerReplica> values) {
              for (int i = 0; i < n; ++i) EXPECT_EQ(number(values[0].tensor(i)), number_of_call);
            },
            {scalar(number_of_call, replica.device())});
      }
    });
  }
}

// In each run every replica stops at a call of its own choice, by returning, throwing or an odd call.
TEST_P(Stress, WhoeverStopsWhenever) {
  const int n = GetParam();
  MirroredStrategy strategy(cpus(n));
  std::atomic<int> ended = 0;
  for (unsigned run = 0; run < 200; ++run) {
    const auto replica_loop = [&](ReplicaContext& replica) {
      std::minstd_rand random(run * 7919 + replica.replica_id() * 31);
      const auto last = random() % 6;
      const auto how = random() % 3;
      for (unsigned call = 0; call < last; ++call) {
        dawdle(random);
        replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device()));
      }
      if (how == 0) throw replica.replica_id();
      if (how == 1) replica.all_reduce(ReduceOp::kMean, scalar(1, replica.device()));
    };
    try {
      strategy.run([&](ReplicaContext& replica) {
        try {
          replica_loop(replica);
          ++ended;
        } catch (...) {
          ++ended;
          throw;
        }
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kAborted) << error.what();
    } catch (int replica) {
      EXPECT_LT(replica, n);
    }
  }
  EXPECT_EQ(ended, 200 * n);
}

INSTANTIATE_TEST_SUITE_P(Replicas, Stress, testing::Values(1, 2, 3, 7));

TEST(StressStrategies, ComeAndGo) {
  const Watchdog watchdog;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20; ++i) {
        MirroredStrategy strategy(cpus(2 + t));
        const auto scope = strategy.scope();
        Variable total("total", scalar(0, "CPU:0"));
        strategy.run([&](ReplicaContext& replica) {
          total.assign(replica.all_reduce(ReduceOp::kSum, scalar(1, replica.device())));
        });
        EXPECT_EQ(number(total.value()), static_cast<float>(2 + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace onesum
