#include "plan/lower_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/cost.h"
#include "plan/sample_plans.h"
#include "plan/text.h"

namespace onesum::plan {
namespace {

using ::testing::HasSubstr;

Element input_of(const Plan& plan) {
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::kInput || buffer.role == Role::kInOut) return buffer.element;
  }
  return Element::kFloat32;
}

TEST(LowerBound, IsNotBeatenByAnyPlan) {
  const std::vector<CostConstants> machines = {
      {},
      {{0, 0}, {1, 0}, 0, 2, 0},
      {{0, 0}, {0, 1}, 0, 8, 0},
      {{0, 0}, {0, 0}, 1, 2, 0},
      {{1e-6, 1e-10}, {1e-5, 1e-9}, 2e-10, 2, 1e-7},
  };
  std::vector<Plan> plans = sample::all();
  plans.push_back(sample::ring(16, {}));
  plans.push_back(sample::direct(16, {}));
  plans.push_back(sample::halving_doubling(16, {}));
  for (const Plan& plan : plans) {
    if (plan.packs[0].contract != Contract::kReduce) continue;
    for (const std::size_t elements : {std::size_t{1}, std::size_t{96}, std::size_t{96000}}) {
      for (const CostConstants& machine : machines) {
        const LowerBound bound =
            lower_bound(plan.packs[0], plan.device_rank, input_of(plan), elements, machine);
        EXPECT_LE(bound.seconds, cost(plan, {{elements}, {}}, machine).seconds * (1 + 1e-12))
            << bound.reason << " for " << elements << " elements and " << to_json(machine) << " of\n"
            << to_text(plan);
      }
    }
  }
}

// Where bytes are all that counts, a ring is as good as anything can be.
TEST(LowerBound, IsReachedByARing) {
  const CostConstants links{{0, 0}, {0, 1}, 0, 2, 0};
  const Plan ring = sample::ring(8, {});
  const LowerBound bound = lower_bound(ring.packs[0], ring.device_rank, Element::kFloat32, 800, links);
  EXPECT_DOUBLE_EQ(bound.seconds, cost(ring, {{800}, {}}, links).seconds);
  EXPECT_EQ(bound.reason, "links: 5600 bytes from one rank");
}

TEST(LowerBound, SaysWhatBinds) {
  const Plan two = sample::direct(2, {});
  EXPECT_EQ(lower_bound(two.packs[0], two.device_rank, Element::kFloat32, 1).reason, "latency");
  const Plan one = sample::one_device(4, {}, false);
  const LowerBound memory = lower_bound(one.packs[0], one.device_rank, Element::kFloat32, 1000);
  EXPECT_EQ(memory.reason, "memory: rank 0 moves 32000 bytes");
  EXPECT_DOUBLE_EQ(memory.seconds, cost(one, {{1000}, {}}).seconds);
  const Plan gather = sample::ring_gather(3, Element::kFloat32);
  EXPECT_THROW(lower_bound(gather.packs[0], gather.device_rank, Element::kFloat32, 1), Error);
}

}  // namespace
}  // namespace onesum::plan
