#include "conformance/core_matrix.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/tensors.h"

namespace onesum::testing {
namespace {

constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};
constexpr ReduceOp kOthers[] = {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};

PerReplica numbers(const Stage& stage, float first) {
  return stage.value([&](std::size_t replica, const Device& device) {
    return scalar(first + static_cast<float>(replica), device);
  });
}

float expected(const Stage& stage, ReduceOp op, float first) {
  const auto count = static_cast<float>(stage.replicas());
  if (op == ReduceOp::kMin) return first;
  if (op == ReduceOp::kMax) return first + count - 1;
  if (op == ReduceOp::kProduct) {
    float product = 1;
    for (std::size_t i = 0; i < stage.replicas(); ++i) product *= first + static_cast<float>(i);
    return product;
  }
  const float sum = count * (count - 1) / 2 + first * count;
  return op == ReduceOp::kSum ? sum : sum / count;
}

std::vector<Destination> destinations(const Stage& stage) {
  return {numbers(stage, -1), Mirrored({scalar(-1.0F, stage.host)}), stage.host};
}

void expect_holds(const Stage& stage, const Mirrored& result, float number, const Destination& destination) {
  stage.expect_on(result, destination);
  for (std::size_t d = 0; d < result.size(); ++d) {
    EXPECT_EQ(result.tensor(d).shape(), Shape());
    EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{number});
  }
}

}  // namespace

void check_reduce(CrossDeviceOps& ops, const Stage& stage) {
  for (const ReduceOp op : kBoth) {
    for (const Destination& to : destinations(stage)) {
      for (const float first : {0.0F, 1.0F})
        expect_holds(stage, ops.reduce(op, numbers(stage, first), to), expected(stage, op, first), to);
    }
  }
}

void check_batch_reduce(CrossDeviceOps& ops, const Stage& stage) {
  for (const ReduceOp op : kBoth) {
    for (const Destination& x : destinations(stage)) {
      for (const Destination& y : destinations(stage)) {
        const std::vector<ValueDestination> pairs{{numbers(stage, 0), x}, {numbers(stage, 1), y}};
        const std::vector<Mirrored> results = ops.batch_reduce(op, pairs);
        ASSERT_EQ(results.size(), 2U);
        expect_holds(stage, results[0], expected(stage, op, 0), x);
        expect_holds(stage, results[1], expected(stage, op, 1), y);
      }
    }
  }
}

void check_other_operations(CrossDeviceOps& ops, const Stage& stage) {
  for (const ReduceOp op : kOthers) {
    for (const Destination& to : destinations(stage)) {
      expect_holds(stage, ops.reduce(op, numbers(stage, 1), to), expected(stage, op, 1), to);
    }
  }
}

void check_broadcast(CrossDeviceOps& ops, const Stage& stage, int root) {
  const bool counts = stage.workers == 1 || stage.rank == root;
  for (const Destination& to : destinations(stage)) {
    for (const std::string& from : {stage.host, stage.devices.front(), stage.devices.back()})
      expect_holds(stage, ops.broadcast(scalar(counts ? 1.0F : 7.0F, from), to, root), 1.0F, to);
  }
}

void check_core_matrix(CrossDeviceOps& ops, const Stage& stage) {
  SCOPED_TRACE(stage.name());
  check_reduce(ops, stage);
  check_batch_reduce(ops, stage);
  check_broadcast(ops, stage);
}

}  // namespace onesum::testing
