// docs/semantics.md, 6.1. A caller's own function in the place of the sum.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum {
namespace {

using testing::contents;
using testing::expect_error;
using testing::expect_invalid;
using testing::scalar;
using testing::scalars;
using testing::vectors;

using Floats = std::vector<float>;
using Components = std::span<const Tensor>;

class AccumulationFnTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

template <class T>
Tensor sum_of(Components components) {
  std::vector<T> sum(components.front().shape().elements());
  for (const Tensor& component : components) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + component.data<T>()[i]);
  }
  return Tensor::from<T>(std::span<const T>(sum), components.front().shape(), components.front().device());
}

// 6.1
TEST_F(AccumulationFnTest, IsCalledOncePerValueWithAllComponentsInOrder) {
  std::vector<std::vector<float>> seen;
  std::vector<void*> addresses;
  ReductionToOneDevice ops({}, [&](Components components) {
    seen.emplace_back();
    for (const Tensor& component : components) {
      seen.back().push_back(component.data<float>()[0]);
      addresses.push_back(component.memory());
    }
    return sum_of<float>(components);
  });
  const PerReplica a = scalars<float>({1, 2, 3});
  const PerReplica b = scalars<float>({40, 50});
  const std::vector<ValueDestination> pairs{{a, a}, {b, "CPU:7"}, {a, b}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kMean, pairs);
  EXPECT_EQ(seen, (std::vector<std::vector<float>>{{1, 2, 3}, {40, 50}, {1, 2, 3}}));
  EXPECT_EQ(addresses[1], a.tensor(1).memory());
  EXPECT_EQ(contents<float>(results[0].tensor(2)), Floats{2});
  EXPECT_EQ(contents<float>(results[1].tensor()), Floats{45});
  EXPECT_EQ(contents<float>(results[2].tensor(1)), Floats{2});
}

TEST_F(AccumulationFnTest, IsAlsoCalledForOneReplica) {
  int calls = 0;
  ReductionToOneDevice ops({}, [&](Components components) {
    ++calls;
    return sum_of<float>(components);
  });
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, scalars<float>({4}), "CPU:0")), Floats{4});
  EXPECT_EQ(calls, 1);
}

// 6.1
TEST_F(AccumulationFnTest, MeanDividesWhateverItReturns) {
  ReductionToOneDevice ops(
      {}, [](Components components) { return scalar(std::int32_t{10}, components[0].device()); });
  const PerReplica value = scalars<std::int32_t>({1, 2, 3, 4});
  EXPECT_EQ(contents<double>(ops.reduce(ReduceOp::kMean, value, "CPU:0")), std::vector<double>{2.5});
  EXPECT_EQ(contents<std::int32_t>(ops.reduce(ReduceOp::kSum, value, "CPU:0")),
            std::vector<std::int32_t>{10});
}

TEST_F(AccumulationFnTest, MayReturnOneOfItsInputs) {
  ReductionToOneDevice ops({}, [](Components components) { return components.back(); });
  const PerReplica value = vectors<float>({{1, 2}, {30, 40}});
  const Mirrored result = ops.reduce(ReduceOp::kMean, value, value);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(result.tensor(d)), (Floats{15, 20}));
    EXPECT_NE(result.tensor(d).memory(), value.tensor(1).memory());
  }
  EXPECT_EQ(contents<float>(value.tensor(1)), (Floats{30, 40}));
}

TEST_F(AccumulationFnTest, InPlaceWithItsOwnInputReturned) {
  for (const std::size_t returned : {0U, 1U}) {
    ReductionToOneDevice ops({}, [&](Components components) { return components[returned]; });
    const std::vector<PerReplica> values{vectors<float>({{2, 4}, {30, 40}})};
    std::vector<PerReplica> results = values;
    ops.batch_reduce_into(ReduceOp::kMean, values, results);
    const Floats expected = returned == 0 ? Floats{1, 2} : Floats{15, 20};
    EXPECT_EQ(contents<float>(values[0].tensor(0)), expected);
    EXPECT_EQ(contents<float>(values[0].tensor(1)), expected);
  }
}

TEST_F(AccumulationFnTest, MayReturnTheCallersResult) {
  const std::vector<PerReplica> values{vectors<float>({{1, 2}, {3, 4}})};
  std::vector<PerReplica> results{vectors<float>({{0, 0}, {0, 0}})};
  ReductionToOneDevice ops({}, [&](Components components) {
    Tensor target = results[0].tensor(1);
    for (std::size_t i = 0; i < 2; ++i) target.data<float>()[i] = components[0].data<float>()[i] * 100;
    return target;
  });
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  for (std::size_t d = 0; d < 2; ++d) EXPECT_EQ(contents<float>(results[0].tensor(d)), (Floats{100, 200}));
}

TEST_F(AccumulationFnTest, LargeTensorsPreparedAndInFlight) {
  std::atomic<int> calls = 0;
  ReductionToOneDevice ops({}, [&](Components components) {
    ++calls;
    return sum_of<float>(components);
  });
  const std::vector<float> ones(700001, 1);
  const PerReplica value = vectors<float>({ones, ones, ones});
  Work work = ops.batch_reduce_async(ReduceOp::kSum, testing::one_pair(value, value));
  EXPECT_EQ(contents<float>(work.results()[0].tensor(2)), std::vector<float>(700001, 3));
  const std::vector<PerReplica> values{value};
  std::vector<PerReplica> results = values;
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, results);
  prepared.run();
  prepared.run();
  EXPECT_EQ(contents<float>(value.tensor(1)), std::vector<float>(700001, 9));
  EXPECT_EQ(calls, 3);
}

TEST_F(AccumulationFnTest, EmptyTensors) {
  ReductionToOneDevice ops({}, [](Components components) {
    return Tensor::empty(DType::kFloat32, Shape{0, 3}, components[0].device());
  });
  const PerReplica value(std::vector<Tensor>{Tensor::empty(DType::kFloat32, {0, 3}, "CPU:0"),
                                             Tensor::empty(DType::kFloat32, {0, 3}, "CPU:1")});
  EXPECT_EQ(ops.reduce(ReduceOp::kMean, value, value).tensor(1).shape(), (Shape{0, 3}));
}

TEST_F(AccumulationFnTest, ThePlanSaysSo) {
  ReductionToOneDevice ops("CPU:3", sum_of<float>);
  const std::vector<ValueDestination> pairs = testing::one_pair(scalars<float>({1, 2}), "CPU:0");
  const Plan plan = ops.plan(ReduceOp::kSum, pairs);
  plan.verify();
  EXPECT_EQ(plan.order(), "accumulation_fn");
  EXPECT_NE(ops.explain(ReduceOp::kSum, pairs).find("accumulation_fn"), std::string::npos);
}

// 8.16
TEST_F(AccumulationFnTest, WhatItReturnsIsChecked) {
  Tensor wrong;
  ReductionToOneDevice ops({}, [&](Components) { return wrong; });
  const std::vector<ValueDestination> pairs{{scalars<float>({1, 2}), "CPU:0"}};
  const auto reduce = [&] { ops.batch_reduce(ReduceOp::kSum, pairs); };
  expect_invalid(reduce, {"pair 0", "accumulation_fn", "no tensor"});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, pairs[0].value, "CPU:0"); },
                 {"value: accumulation_fn", "no tensor"});
  wrong = testing::vector_of<float>({1}, "CPU:0");
  expect_invalid(reduce, {"pair 0", "accumulation_fn", "float32 [1]", "float32 []"});
  wrong = scalar(1.0, "CPU:0");
  expect_invalid(reduce, {"pair 0", "accumulation_fn", "float64 []", "float32 []"});
  float memory = 0;
  wrong = Tensor::borrow(&memory, DType::kFloat32, {}, "GPU:0");
  expect_error(reduce, ErrorCode::kUnavailable, {"GPU:0"});
  wrong = scalar(5.0F, "CPU:9");
  EXPECT_EQ(contents<float>(ops.batch_reduce(ReduceOp::kSum, pairs).at(0)), Floats{5});
}

// 6.1
TEST_F(AccumulationFnTest, WhatItThrowsComesOut) {
  int calls = 0;
  ReductionToOneDevice ops({}, [&](Components components) {
    if (++calls <= 2) throw std::out_of_range("mine");
    return sum_of<float>(components);
  });
  const PerReplica value = scalars<float>({1, 2});
  EXPECT_THROW(ops.reduce(ReduceOp::kSum, value, value), std::out_of_range);
  Work work = ops.batch_reduce_async(ReduceOp::kSum, testing::one_pair(value, value));
  EXPECT_THROW(work.wait(), std::out_of_range);
  EXPECT_THROW(work.wait(), std::out_of_range);
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), Floats{3});
}

TEST_F(AccumulationFnTest, MayNotCallTheObjectThatCallsIt) {
  ReductionToOneDevice* self = nullptr;
  ReductionToOneDevice ops({}, [&](Components components) {
    self->reduce(ReduceOp::kSum, PerReplica(components[0]), "CPU:0");
    return components[0];
  });
  self = &ops;
  const PerReplica value = scalars<float>({1, 2});
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, value); }, {"inside", "accumulation_fn"});
  Work work = ops.batch_reduce_async(ReduceOp::kSum, testing::one_pair(value, value));
  expect_invalid([&] { work.wait(); }, {"inside", "accumulation_fn"});
}

TEST_F(AccumulationFnTest, MayCallOnAnotherClusterButNotBackFromThere) {
  ReductionToOneDevice* outer = nullptr;
  bool back = false;
  ReductionToOneDevice inner({}, [&](Components components) {
    if (back) outer->reduce(ReduceOp::kSum, PerReplica(components[0]), "CPU:0");
    return sum_of<float>(components);
  });
  ReductionToOneDevice ops({}, [&](Components components) {
    const PerReplica value(std::vector<Tensor>(components.begin(), components.end()));
    return inner.reduce(ReduceOp::kSum, value, "CPU:0").tensor();
  });
  outer = &ops;
  const PerReplica value = scalars<float>({1, 2});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), Floats{3});
  back = true;
  expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, "CPU:0"); }, {"inside", "accumulation_fn"});
  Work work = ops.batch_reduce_async(ReduceOp::kSum, testing::one_pair(value, value));
  expect_invalid([&] { work.wait(); }, {"inside", "accumulation_fn"});
  back = false;
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), Floats{3});
}

TEST_F(AccumulationFnTest, MayStartAWorkButNotWaitForIt) {
  const Cluster cluster = Cluster::local();
  ReductionToOneDevice other({}, {}, cluster);
  std::optional<Work> kept;
  bool waits = true;
  ReductionToOneDevice ops(
      {},
      [&](Components components) {
        const std::vector<ValueDestination> pairs = testing::one_pair(PerReplica(components[0]), "CPU:0");
        Work work = other.batch_reduce_async(ReduceOp::kSum, pairs);
        other.batch_reduce_async(ReduceOp::kSum, pairs);  // dropped: it goes on by itself
        EXPECT_FALSE(work.is_done());
        if (waits) {
          expect_invalid([&] { work.wait(); }, {"inside", "accumulation_fn"});
          expect_invalid([&] { work.results(); }, {"inside", "accumulation_fn"});
        }
        kept = std::move(work);
        return sum_of<float>(components);
      },
      cluster);
  const PerReplica value = scalars<float>({1, 2});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), Floats{3});
  EXPECT_EQ(contents<float>(kept->results().at(0)), Floats{1});
  waits = false;
  EXPECT_EQ(contents<float>(
                ops.batch_reduce_async(ReduceOp::kSum, testing::one_pair(value, "CPU:0")).results().at(0)),
            Floats{3});
  EXPECT_EQ(contents<float>(kept->results().at(0)), Floats{1});
}

}  // namespace
}  // namespace onesum
