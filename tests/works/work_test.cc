// docs/semantics.md, 5.8, 5.11 and 5.12. Calls that are not waited for.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using namespace std::chrono_literals;

using testing::contents;
using testing::Door;
using testing::expect_error;
using testing::expect_invalid;
using testing::one_pair;
using testing::scalars;

using Floats = std::vector<float>;
using Components = std::span<const Tensor>;

class WorkTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

CommunicationOptions within(std::chrono::milliseconds timeout) {
  CommunicationOptions options;
  options.timeout = timeout;
  return options;
}

// Holds every call of its cluster up until the door opens.
struct Holder {
  explicit Holder(const Cluster& cluster)
      : ops(
            {},
            [this](Components components) {
              door.pass();
              return components[0];
            },
            cluster),
        work(ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"))) {
    door.await_arrivals();
  }
  ~Holder() { door.open(); }
  Door door;
  ReductionToOneDevice ops;
  Work work;
};

// 5.8
TEST_F(WorkTest, GivesTheResultsOfItsCall) {
  ReductionToOneDevice ops;
  const std::vector<ValueDestination> pairs{{scalars<float>({1, 2}), "CPU:0"},
                                            {scalars<float>({3, 4}), "CPU:1"}};
  Work work = ops.batch_reduce_async(ReduceOp::kSum, pairs);
  work.wait();
  EXPECT_TRUE(work.is_done());
  for (int again = 0; again < 2; ++again) {
    const std::vector<Mirrored> results = work.results();
    EXPECT_EQ(contents<float>(results.at(0)), Floats{3});
    EXPECT_EQ(contents<float>(results.at(1)), Floats{7});
  }
}

TEST_F(WorkTest, ManyFromManyThreadsEachWithItsOwnResults) {
  ReductionToOneDevice ops;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ops, t] {
      std::vector<Work> works;
      for (int i = 0; i < 50; ++i) {
        const auto number = static_cast<float>(t * 1000 + i);
        const Floats many(static_cast<std::size_t>(1 + i * 37), number);
        works.push_back(
            ops.batch_reduce_async(ReduceOp::kSum, one_pair(testing::vectors<float>({many, many}), "CPU:1")));
        if (i % 7 == 0) {
          EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kMean, scalars<float>({number, number}), "CPU:0")),
                    Floats{number});
        }
      }
      for (std::size_t i = works.size(); i-- > 0;) {
        const auto number = static_cast<float>(2 * (t * 1000 + static_cast<int>(i)));
        EXPECT_EQ(contents<float>(works[i].results().at(0)), Floats(1 + i * 37, number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ops.last_call().number, 4U * 50 + 4 * 8);
}

// 5.12
TEST_F(WorkTest, RunInTheOrderInWhichTheyWereStarted) {
  const Cluster cluster = Cluster::local();
  std::vector<float> order;  // written inside calls only, which run one at a time
  const AccumulationFn note = [&](Components components) {
    order.push_back(components[0].data<float>()[0]);
    return components[0];
  };
  ReductionToOneDevice a({}, note, cluster);
  ReductionToOneDevice b({}, note, cluster);
  std::vector<Work> works;
  Floats expected;
  {
    Holder holder(cluster);
    for (int i = 0; i < 20; ++i) {
      ReductionToOneDevice& ops = i % 3 == 0 ? a : b;
      works.push_back(
          ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({static_cast<float>(i)}), "CPU:0")));
      expected.push_back(static_cast<float>(i));
      EXPECT_FALSE(works.back().is_done());
    }
  }
  a.reduce(ReduceOp::kSum, scalars<float>({99}), "CPU:0");  // after all of them
  expected.push_back(99);
  EXPECT_EQ(order, expected);
  for (const Work& work : works) EXPECT_TRUE(work.is_done());
}

// 5.8
TEST_F(WorkTest, ErrorsSurfaceAtWaitAndNotBefore) {
  ReductionToOneDevice ops;
  const PerReplica bad(std::vector<Tensor>{testing::scalar(1.0F, "CPU:0"), testing::scalar(1.0, "CPU:1")});
  Work work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(bad, "CPU:0"));
  Work good = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0"));
  EXPECT_EQ(contents<float>(good.results().at(0)), Floats{3});
  EXPECT_TRUE(work.is_done());
  expect_invalid([&] { work.wait(); }, {"pair 0", "float64"});
  expect_invalid([&] { work.results(); }, {"pair 0", "float64"});
  EXPECT_TRUE(work.is_done());
}

TEST_F(WorkTest, KeepsItsTensorsAlive) {
  ReductionToOneDevice ops;
  Work work = ops.batch_reduce_async(ReduceOp::kSum, {});
  {
    Holder holder(ops.cluster());
    const PerReplica value = testing::random_value(DType::kFloat32, Shape{100000}, testing::cpus(3), 1);
    work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(value, value));
  }
  const PerReplica again = testing::random_value(DType::kFloat32, Shape{100000}, testing::cpus(3), 1);
  EXPECT_TRUE(testing::all_hold(work.results().at(0), testing::simulated(ops, ReduceOp::kSum, again, again)));
}

TEST_F(WorkTest, LetsGoOfTheCallersTensorsBeforeItIsDone) {
  ReductionToOneDevice ops;
  for (int round = 0; round < 50; ++round) {
    float memory = 1;
    {
      const Tensor borrowed = Tensor::borrow(&memory, DType::kFloat32, {}, "CPU:0");
      ops.batch_reduce_async(ReduceOp::kSum, one_pair(PerReplica(borrowed), "CPU:0")).wait();
    }
    memory = 2;  // seen as a race by a sanitizer if anything still read it
  }
}

// 5.8
TEST_F(WorkTest, DestroyingItWaits) {
  ReductionToOneDevice slow({}, [](Components components) {
    std::this_thread::sleep_for(30ms);
    return components[0];
  });
  std::atomic<bool> finished = false;
  ReductionToOneDevice last(
      {},
      [&](Components components) {
        std::this_thread::sleep_for(30ms);
        finished = true;
        return components[0];
      },
      slow.cluster());
  {
    const Work first = slow.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"));
    const Work second = last.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"));
  }
  EXPECT_TRUE(finished);
  finished = false;
  Work work = last.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1}), "CPU:0"));
  work = last.batch_reduce_async(ReduceOp::kSum, {});  // so does assigning over it
  EXPECT_TRUE(finished);
}

TEST_F(WorkTest, MovedFromHasNothingToWaitFor) {
  ReductionToOneDevice ops;
  Work work = ops.batch_reduce_async(ReduceOp::kSum, one_pair(scalars<float>({1, 2}), "CPU:0"));
  Work moved = std::move(work);
  EXPECT_TRUE(work.is_done());  // NOLINT(bugprone-use-after-move)
  expect_invalid([&] { work.wait(); }, {"moved away"});
  expect_invalid([&] { work.results(); }, {"moved away"});
  EXPECT_EQ(contents<float>(moved.results().at(0)), Floats{3});
  work = std::move(moved);
  EXPECT_EQ(contents<float>(work.results().at(0)), Floats{3});
}

// 5.11, 8.17
TEST_F(WorkTest, ACallQueuesBehindWorksUntilItsTimeout) {
  ReductionToOneDevice ops;
  const PerReplica value = scalars<float>({1, 2});
  std::vector<PerReplica> values{value};
  std::vector<PerReplica> results{scalars<float>({0, 0})};
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results, within(20ms));
  {
    Holder holder(ops.cluster());
    const auto late = [&](const auto& call) {
      expect_error(call, ErrorCode::kDeadlineExceeded, {"timeout", "earlier calls"});
    };
    late([&] { ops.reduce(ReduceOp::kSum, value, value, within(20ms)); });
    late([&] { ops.batch_reduce_into(ReduceOp::kSum, values, results, within(20ms)); });
    late([&] { prepared.run(); });
    EXPECT_EQ(contents<float>(results[0].tensor(0)), Floats{0});
  }
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0", within(60s))), Floats{3});
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].tensor(1)), Floats{3});
}

// 5.11, 8.17
TEST_F(WorkTest, AWorkWhoseTurnComesAfterItsTimeoutIsNotRun) {
  ReductionToOneDevice ops;
  std::vector<PerReplica> values{scalars<float>({1, 2})};
  std::vector<PerReplica> results{scalars<float>({0, 0})};
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results, within(20ms));
  Work late = ops.batch_reduce_async(ReduceOp::kSum, {});
  Work late_prepared = ops.batch_reduce_async(ReduceOp::kSum, {});
  Work patient = ops.batch_reduce_async(ReduceOp::kSum, {});
  {
    Holder holder(ops.cluster());
    late = ops.batch_reduce_async(ReduceOp::kSum, one_pair(values[0], "CPU:0"), within(20ms));
    late_prepared = prepared.start();
    patient = ops.batch_reduce_async(ReduceOp::kSum, one_pair(values[0], "CPU:0"));
    std::this_thread::sleep_for(50ms);
  }
  expect_error([&] { late.wait(); }, ErrorCode::kDeadlineExceeded, {"timeout"});
  expect_error([&] { late_prepared.wait(); }, ErrorCode::kDeadlineExceeded, {"timeout"});
  EXPECT_EQ(contents<float>(results[0].tensor(0)), Floats{0});
  EXPECT_EQ(contents<float>(patient.results().at(0)), Floats{3});
}

// 8.17
TEST_F(WorkTest, ATimeoutInsideTheCallSaysThatResultsAreIncomplete) {
  ReductionToOneDevice ops({}, [](Components components) {
    std::this_thread::sleep_for(30ms);
    return components[0];
  });
  const PerReplica value = scalars<float>({1, 2});
  expect_error([&] { ops.reduce(ReduceOp::kSum, value, value, within(5ms)); }, ErrorCode::kDeadlineExceeded,
               {"timeout", "incomplete"});
  EXPECT_EQ(contents<float>(value.tensor(1)), Floats{2});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), Floats{1});
}

TEST_F(WorkTest, ALargeCallEndsAtItsTimeout) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::random_value(DType::kFloat32, Shape{4 << 20}, testing::cpus(4), 1);
  const Mirrored right = ops.reduce(ReduceOp::kSum, value, "CPU:0");  // pages and plans are there now
  int late = 0;
  for (int i = 0; i < 50 && late == 0; ++i) {
    try {
      const Mirrored result = ops.reduce(ReduceOp::kSum, value, value, within(1ms));
      ASSERT_TRUE(testing::all_hold(result, testing::bytes_of(right.tensor())));  // in time: then it is right
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDeadlineExceeded) << error.what();
      ++late;
    }
  }
  EXPECT_TRUE(testing::all_hold(ops.reduce(ReduceOp::kSum, value, value), testing::bytes_of(right.tensor())));
}

}  // namespace
}  // namespace onesum
