// Who may go before whom: objects, clusters, works and prepared calls.
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using testing::contents;
using testing::Door;
using testing::one_pair;
using testing::scalars;

using Floats = std::vector<float>;
using Components = std::span<const Tensor>;

class LifetimeTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

TEST_F(LifetimeTest, WorksOutliveTheirObject) {
  Door door;
  auto ops = std::make_unique<ReductionToOneDevice>(std::nullopt, [&](Components components) {
    door.pass();
    return components.back();
  });
  std::vector<Work> works;
  for (int i = 0; i < 5; ++i)
    works.push_back(ops->batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0")));
  door.await_arrivals();
  ops.reset();
  door.open();
  for (Work& work : works) EXPECT_EQ(contents<float>(work.results().at(0)), Floats{2});
}

TEST_F(LifetimeTest, PreparedCallsOutliveTheirObject) {
  const std::vector<PerReplica> values{scalars<float>({1, 2})};
  std::vector<PerReplica> results{scalars<float>({0, 0})};
  std::optional<PreparedReduce> prepared;
  {
    ReductionToOneDevice ops;
    prepared.emplace(ops.prepare(ReduceOp::kSum, values, results));
  }
  prepared->run();
  EXPECT_EQ(contents<float>(results[0].tensor(1)), Floats{3});
  Work work = prepared->start();
  prepared.reset();
  work.wait();
}

TEST_F(LifetimeTest, PreparedCallsKeepTheirTensors) {
  ReductionToOneDevice ops;
  std::optional<PreparedReduce> prepared;
  Tensor result = testing::vector_of<float>(Floats(5000, 0), "CPU:0");
  {
    const Floats ones(5000, 1);
    const std::vector<PerReplica> values{testing::vectors<float>({ones, ones})};
    std::vector<PerReplica> results{PerReplica(result)};
    prepared.emplace(ops.prepare(ReduceOp::kSum, values, results));
  }
  const Tensor others =
      testing::vector_of<float>(Floats(5000, 7), "CPU:0");  // would take the memory if it were free
  prepared->run();
  EXPECT_EQ(contents<float>(result), Floats(5000, 2));
}

// The job that holds the last handle of everything runs on the sequence's own thread.
TEST_F(LifetimeTest, TheLastHandleMayGoOnTheLibrarysThread) {
  for (int round = 0; round < 20; ++round) {
    const auto door = std::make_shared<Door>();
    {
      ReductionToOneDevice inner({}, [door](Components components) {
        door->pass();
        return components[0];
      });
      // Dropped inside a call of its own cluster, a Work goes on without anybody waiting for it.
      std::optional<Work> orphan;
      ReductionToOneDevice outer(
          {},
          [&](Components components) {
            orphan.emplace(
                inner.batch_reduce_async(ReduceOp::kSum, one_pair(PerReplica(components[0]), "CPU:0")));
            orphan.reset();
            return components[0];
          },
          inner.cluster());
      outer.reduce(ReduceOp::kSum, scalars<float>({1}), "CPU:0");
      door->await_arrivals();
    }
    door->open();
  }
}

TEST_F(LifetimeTest, ObjectsComeAndGoWhileTheirClusterWorks) {
  const Cluster cluster = Cluster::local({"CPU:0", "CPU:1"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 40; ++i) {
        ReductionToOneDevice ops({}, {}, cluster);
        Work work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0"));
        EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, scalars<float>({4, 5}), "CPU:1")), Floats{9});
        EXPECT_EQ(contents<float>(work.results().at(0)), Floats{3});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LifetimeTest, ClustersComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    ReductionToOneDevice ops;
    Work work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0"));
    if (i % 2 == 0) work.wait();
  }
}

TEST_F(LifetimeTest, ClustersDoNotWaitForEachOther) {
  Door door;
  ReductionToOneDevice held({}, [&](Components components) {
    door.pass();
    return components[0];
  });
  Work work = held.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"));
  door.await_arrivals();
  ReductionToOneDevice free;
  EXPECT_EQ(contents<float>(free.reduce(ReduceOp::kSum, scalars<float>({1, 2}), "CPU:0")), Floats{3});
  EXPECT_EQ(
      contents<float>(
          free.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0")).results().at(0)),
      Floats{3});
  EXPECT_FALSE(work.is_done());
  door.open();
}

TEST_F(LifetimeTest, ResultsOutliveEverything) {
  std::optional<Mirrored> result;
  {
    ReductionToOneDevice ops;
    result = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), scalars<float>({0, 0})))
                 .results()
                 .at(0);
  }
  EXPECT_EQ(contents<float>(result->tensor(1)), Floats{3});
}

}  // namespace
}  // namespace onesum
