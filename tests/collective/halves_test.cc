// Ring, halving-doubling and direct are a reduce-scatter followed by an all-gather, each proved by itself.
#include <string>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "collective/layouts.h"
#include "plan/cost.h"
#include "plan/text.h"
#include "plan/verify.h"
#include "support/expect_error.h"

namespace onesum::collective {
namespace {

using onesum::testing::expect_error;

constexpr Algorithm kWithHalves[] = {Algorithm::kRing, Algorithm::kHalvingDoubling, Algorithm::kDirect};

Scheme scheme_of(Algorithm algorithm) {
  Scheme scheme;
  scheme.across = algorithm;
  return scheme;
}

TEST(Halves, AreProvedOnEveryLayout) {
  for (const Algorithm algorithm : kWithHalves) {
    for (const std::int32_t workers : {1, 2, 3, 4, 5, 7, 8, 11, 16}) {
      for (const std::int32_t devices : {1, 2, 3}) {
        Layout layout;
        layout.workers = workers;
        layout.devices = devices;
        SCOPED_TRACE(std::string(name_of(algorithm)) + " on " + layout.name());
        const Topology topology = layout.topology();
        for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt8}) {
          const Task task = layout.task(ReduceOp::kMean, dtype, false);
          const plan::Plan scatter = reduce_scatter(topology, task, scheme_of(algorithm));
          const plan::Plan gather = all_gather(topology, task, scheme_of(algorithm));
          ASSERT_NO_THROW(plan::verify(scatter)) << plan::to_text(scatter);
          ASSERT_NO_THROW(plan::verify(gather)) << plan::to_text(gather);
          EXPECT_EQ(scatter.order, all_reduce(topology, task, scheme_of(algorithm)).order);
        }
      }
    }
  }
}

// Together they send just what the whole sends.
TEST(Halves, SendWhatTheWholeSends) {
  Layout layout;
  layout.workers = 8;
  const Topology topology = layout.topology();
  const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
  const plan::Sizes sizes{{8000}, {}};
  for (const Algorithm algorithm : kWithHalves) {
    const Scheme scheme = scheme_of(algorithm);
    const auto sent = [&](const plan::Plan& plan) { return plan::cost(plan, sizes).total.bytes_sent; };
    EXPECT_EQ(sent(reduce_scatter(topology, task, scheme)), 7U * 32000);
    EXPECT_EQ(sent(all_gather(topology, task, scheme)), 7U * 32000);
    EXPECT_EQ(sent(all_reduce(topology, task, scheme)), 2 * 7U * 32000);
  }
}

TEST(Halves, OfOtherSchemesAreRefused) {
  Layout layout;
  layout.workers = 2;
  const Topology topology = layout.topology();
  const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
  Scheme scheme = scheme_of(Algorithm::kHierarchicalCopy);
  expect_error([&] { reduce_scatter(topology, task, scheme); }, ErrorCode::kInvalidArgument,
               {"hierarchical_copy", "xring, rechd or direct"});
  scheme = scheme_of(Algorithm::kMachines);
  expect_error([&] { all_gather(topology, task, scheme); }, ErrorCode::kInvalidArgument,
               {"machines", "xring, rechd or direct"});
  scheme = scheme_of(Algorithm::kRing);
  scheme.shards = 2;
  expect_error([&] { all_gather(topology, task, scheme); }, ErrorCode::kInvalidArgument, {"xring#2"});
}

}  // namespace
}  // namespace onesum::collective
