// docs/semantics.md, 5.9. PreparedReduce: once validated, planned and bound, run again and again.
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::expect_invalid;

using Floats = std::vector<float>;
using Values = std::vector<PerReplica>;

class PreparedTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

TEST_F(PreparedTest, RunsOnWhateverTheTensorsHoldThen) {
  ReductionToOneDevice ops;
  Values values{testing::random_value(DType::kFloat32, Shape{3001}, cpus(3), 1),
                testing::random_value(DType::kInt16, Shape{77}, cpus(2), 2)};
  Values results{testing::blank_results(ReduceOp::kMean, values[0], cpus(3)),
                 testing::blank_results(ReduceOp::kMean, values[1], {"CPU:4"})};
  PreparedReduce prepared = ops.prepare(ReduceOp::kMean, values, results);
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (const PerReplica& value : values) {
      for (std::size_t r = 0; r < value.size(); ++r) {
        const Tensor& tensor = value.tensor(r);
        testing::fill({static_cast<std::byte*>(tensor.memory()), tensor.bytes()}, tensor.dtype(),
                      testing::Fill::kPlain, round * 10 + r);
      }
    }
    if (round % 3 == 0) {
      prepared.start().wait();
    } else {
      prepared.run();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(testing::all_hold(results[i], testing::simulated(ops, ReduceOp::kMean, values[i], "CPU:0")))
          << round;
    }
  }
  EXPECT_EQ(ops.last_call().number, 20U);
}

TEST_F(PreparedTest, InPlaceItAddsUp) {
  ReductionToOneDevice ops;
  const Values values{testing::vectors<float>({{1}, {2}})};
  Values results = values;
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
  for (int i = 0; i < 4; ++i) prepared.run();
  EXPECT_EQ(contents<float>(values[0].tensor(0)), Floats{24});
  EXPECT_EQ(contents<float>(values[0].tensor(1)), Floats{24});
}

TEST_F(PreparedTest, SeveralStartsRunOneAfterTheOther) {
  ReductionToOneDevice ops;
  const Values values{testing::vectors<float>({Floats(20000, 1), Floats(20000, 0)})};
  Values results = values;
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
  std::vector<Work> works;
  for (int i = 0; i < 10; ++i) works.push_back(prepared.start());
  for (Work& work : works) {
    work.wait();
    EXPECT_TRUE(work.results().empty());
  }
  EXPECT_EQ(contents<float>(values[0].tensor(1)), Floats(20000, 512));  // 1, then doubled nine times
}

TEST_F(PreparedTest, FromSeveralThreads) {
  ReductionToOneDevice ops;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ops, t] {
      const Values values{testing::vectors<float>({Floats(3000, static_cast<float>(t)), Floats(3000, 1)})};
      Values results{testing::blank_results(ReduceOp::kSum, values[0], cpus(2))};
      PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
      for (int i = 0; i < 50; ++i) {
        prepared.run();
        ASSERT_EQ(contents<float>(results[0].tensor(1)), Floats(3000, static_cast<float>(t + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PreparedTest, MixedComponentsAreReadAnewInEveryRun) {
  ReductionToOneDevice ops;
  Tensor dense = Tensor::from<float>({1, 2, 3}, {3, 1}, "CPU:0");
  IndexedSlices sparse = testing::slices({{10}}, {2}, Shape{3, 1}, "CPU:1");
  const Values values{PerReplica(std::vector<Value>{dense, sparse}), testing::vectors<float>({{1}, {2}})};
  Values results{PerReplica(std::vector<Tensor>{Tensor::from<float>({0, 0, 0}, {3, 1}, "CPU:0")}), values[1]};
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].tensor()), (Floats{1, 2, 13}));
  EXPECT_EQ(contents<float>(values[1].tensor(0)), Floats{3});
  sparse.indices.data<std::int64_t>()[0] = 0;
  dense.data<float>()[1] = 7;
  prepared.start().wait();
  EXPECT_EQ(contents<float>(results[0].tensor()), (Floats{11, 7, 3}));
  EXPECT_EQ(contents<float>(values[1].tensor(0)), Floats{6});
  sparse.indices.data<std::int64_t>()[0] = 3;
  expect_invalid([&] { prepared.run(); }, {"pair 0", "replica 1", "index 3"});
}

TEST_F(PreparedTest, MovedFromHasNothingToRun) {
  ReductionToOneDevice ops;
  const Values values{testing::vectors<float>({{1}, {2}})};
  Values results = values;
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
  PreparedReduce moved = std::move(prepared);
  expect_invalid([&] { prepared.run(); }, {"moved away"});    // NOLINT(bugprone-use-after-move)
  expect_invalid([&] { prepared.start(); }, {"moved away"});  // NOLINT(bugprone-use-after-move)
  moved.run();
  EXPECT_EQ(contents<float>(values[0].tensor(0)), Floats{3});
}

TEST_F(PreparedTest, TwoOfTheSameKindDoNotShareAddresses) {
  ReductionToOneDevice ops;
  const Values a{testing::vectors<float>({{1}, {2}})};
  const Values b{testing::vectors<float>({{10}, {20}})};
  Values results_a = a;
  Values results_b = b;
  PreparedReduce first = ops.prepare(ReduceOp::kSum, a, results_a);
  PreparedReduce second = ops.prepare(ReduceOp::kSum, b, results_b);
  first.run();
  second.run();
  ops.batch_reduce_into(ReduceOp::kSum, b, results_b);
  first.run();
  EXPECT_EQ(contents<float>(a[0].tensor(1)), Floats{6});
  EXPECT_EQ(contents<float>(b[0].tensor(1)), Floats{60});
}

}  // namespace
}  // namespace onesum
