// Every plan of one_device is proved, claims the right order, and computes what a plain sum gives.
#include "collective/one_device.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/concatenate.h"
#include "plan/simulate.h"
#include "plan/text.h"
#include "plan/verify.h"
#include "support/bits.h"

namespace onesum::collective {
namespace {

using plan::Contract;

constexpr std::int32_t kDevices = 80;

// Types that a reduction of a dtype has.
struct Types {
  Element input, accumulator, output;
  std::int64_t divisor;
};

Types types_of(ReduceOp op, DType dtype, std::size_t replicas) {
  const Element input = element_of(dtype);
  return {input, accumulator_of(op, input), element_of(result_dtype(op, dtype)),
          op == ReduceOp::kMean ? static_cast<std::int64_t>(replicas) : 1};
}

Task task_of(const Types& types, std::size_t replicas, const std::vector<Target>& destinations,
             Contract contract = Contract::kReduce) {
  Task task;
  task.contract = contract;
  task.accumulator = types.accumulator;
  task.output = types.output;
  task.divisor = types.divisor;
  for (std::size_t r = 0; r < replicas; ++r)
    task.replicas.push_back({static_cast<std::int32_t>(r), types.input});
  task.destinations = destinations;
  return task;
}

plan::Plan build(const Task& task, std::int32_t on, Accumulation accumulation = Accumulation::kTree) {
  static const Topology topology{std::vector<std::int32_t>(kDevices, 0), {0}};
  if (task.contract == Contract::kConcatenate) return concatenate(topology, task, on);
  return one_device(topology, task, on, accumulation);
}

void expect_proved(const Task& task, std::int32_t on, const std::string& what) {
  SCOPED_TRACE(what);
  const plan::Plan plan = build(task, on);
  EXPECT_EQ(plan.algorithm, task.contract == Contract::kConcatenate ? "concatenate" : "one_device");
  EXPECT_EQ(plan.order, "canonical");
  plan::Proof proof;
  ASSERT_NO_THROW(proof = plan::verify(plan)) << plan::to_text(plan);
  EXPECT_TRUE(proof.packs.at(0).canonical);
  EXPECT_EQ(plan::parse_text(plan::to_text(plan)), plan);
}

std::vector<Target> fresh(std::int32_t first, std::int32_t count, std::int32_t step = 1) {
  std::vector<Target> targets;
  for (std::int32_t i = 0; i < count; ++i) targets.push_back({first + i * step, -1});
  return targets;
}

// Where results can be, for n replicas on devices 0 to n-1.
std::vector<std::vector<Target>> placements(std::int32_t n, bool can_replace) {
  std::vector<std::vector<Target>> all{
      fresh(0, n), fresh(0, 1),     fresh(n - 1, 1),          fresh(n, 1),
      fresh(n, 3), fresh(0, n + 2), fresh(0, (n + 1) / 2, 2), fresh(n - 1, n, -1)};
  if (!can_replace) return all;
  std::vector<Target> in_place;
  for (std::int32_t r = 0; r < n; ++r) in_place.push_back({r, r});
  all.push_back(in_place);
  std::reverse(in_place.begin(), in_place.end());
  all.push_back(in_place);
  all.push_back({{n - 1, n - 1}});
  all.push_back({{n + 3, -1}, {0, 0}});
  std::vector<Target> partly;
  for (std::int32_t r = 0; r < n; ++r) partly.push_back({r, r % 2 == 0 ? r : -1});
  partly.push_back({n + 1, -1});
  all.push_back(partly);
  return all;
}

TEST(OneDevice, IsProvedForEveryNumberOfReplicasAndPlacement) {
  for (std::int32_t n = 1; n <= 64; ++n) {
    const auto replicas = static_cast<std::size_t>(n);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const Types types = types_of(op, DType::kFloat32, replicas);
      int number = 0;
      for (const std::vector<Target>& destinations : placements(n, true)) {
        for (const std::int32_t on : {0, n - 1, kDevices - 1}) {
          expect_proved(task_of(types, replicas, destinations), on,
                        std::to_string(n) + " replicas, placement " + std::to_string(number) + " on " +
                            std::to_string(on));
        }
        ++number;
      }
    }
  }
}

TEST(OneDevice, IsProvedForEveryType) {
  for (int number = 1; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      for (const std::int32_t n : {1, 2, 3, 6, 17}) {
        const Types types = types_of(op, dtype, static_cast<std::size_t>(n));
        for (const std::vector<Target>& destinations : placements(n, types.input == types.output)) {
          expect_proved(task_of(types, static_cast<std::size_t>(n), destinations), 0,
                        std::string(to_string(dtype)));
        }
      }
    }
  }
}

TEST(OneDevice, IsProvedForConcatenations) {
  for (int number = 0; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const std::int32_t n : {1, 2, 3, 9, 33}) {
      const auto replicas = static_cast<std::size_t>(n);
      const Element element = element_of(dtype);
      for (const std::vector<Target>& destinations : placements(n, false)) {
        expect_proved(task_of({element, element, element, 1}, replicas, destinations, Contract::kConcatenate),
                      0, std::string(to_string(dtype)) + " copied");
        if (dtype == DType::kBool) continue;
        expect_proved(task_of(types_of(ReduceOp::kMean, dtype, replicas), replicas, destinations,
                              Contract::kConcatenate),
                      0, std::string(to_string(dtype)) + " divided");
      }
    }
  }
}

TEST(OneDevice, IsProvedForIndicesOfTwoWidths) {
  Task task =
      task_of({Element::kInt32, Element::kInt64, Element::kInt64, 1}, 4, fresh(0, 2), Contract::kConcatenate);
  task.replicas[1].element = Element::kInt64;
  task.replicas[2].element = Element::kInt64;
  expect_proved(task, 0, "narrow, wide, wide, narrow");
}

TEST(OneDevice, IsOneStepForASum) {
  for (const std::size_t n : {2U, 8U, 33U}) {
    const plan::Plan plan = build(
        task_of(types_of(ReduceOp::kSum, DType::kFloat32, n), n, fresh(0, static_cast<std::int32_t>(n))), 0);
    ASSERT_EQ(plan.lanes.size(), 1U);
    ASSERT_EQ(plan.lanes[0].steps.size(), 1U);
    EXPECT_EQ(plan.lanes[0].steps[0].num_sources, n);
    EXPECT_EQ(plan.lanes[0].steps[0].num_destinations, n);
    EXPECT_TRUE(plan.channels.empty());
  }
}

TEST(OneDevice, DoesNothingWhereTheOneReplicaIsTheResult) {
  const plan::Plan plan = build(task_of(types_of(ReduceOp::kMean, DType::kFloat32, 1), 1, {{0, 0}}), 0);
  EXPECT_TRUE(plan.lanes.at(0).steps.empty());
  plan::verify(plan);
}

TEST(OneDevice, WithAUsersFunctionSaysSoAndIsProved) {
  for (const std::int32_t n : {1, 2, 5}) {
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat16, DType::kInt8, DType::kUInt64, DType::kComplex64}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
        const Types types = types_of(op, dtype, static_cast<std::size_t>(n));
        for (const std::vector<Target>& destinations : placements(n, types.input == types.output)) {
          const plan::Plan plan = build(task_of(types, static_cast<std::size_t>(n), destinations), n + 4,
                                        Accumulation::kFunction);
          EXPECT_EQ(plan.order, "accumulation_fn");
          EXPECT_NO_THROW(plan::verify(plan)) << plan::to_text(plan);
          EXPECT_EQ(plan.lanes.at(0).steps.at(0).op, plan::Op::kCall);
        }
      }
    }
  }
}

// By hand, without the plan: the canonical tree, one element at a time.
float canonical_sum(const std::vector<float>& x, std::size_t begin, std::size_t end) {
  const std::size_t n = end - begin;
  if (n == 1) return x[begin];
  std::size_t left = 1;
  while (2 * left < n) left *= 2;
  return canonical_sum(x, begin, begin + left) + canonical_sum(x, begin + left, end);
}

TEST(OneDevice, SimulatesToTheCanonicalSum) {
  constexpr std::size_t kElements = 9;
  for (std::size_t n = 1; n <= 64; ++n) {
    const plan::Plan plan = build(task_of(types_of(ReduceOp::kMean, DType::kFloat32, n), n, fresh(0, 2)), 0);
    plan::BytesOfPacks inputs(1);
    std::vector<std::vector<float>> replicas(n, std::vector<float>(kElements));
    for (std::size_t r = 0; r < n; ++r) {
      testing::fill(std::as_writable_bytes(std::span(replicas[r])), DType::kFloat32, testing::Fill::kPlain,
                    r + n);
      const auto bytes = std::as_bytes(std::span(replicas[r]));
      inputs[0].emplace_back(bytes.begin(), bytes.end());
    }
    std::vector<float> expected;
    for (std::size_t i = 0; i < kElements; ++i) {
      std::vector<float> column;
      for (const std::vector<float>& replica : replicas) column.push_back(replica[i]);
      expected.push_back(canonical_sum(column, 0, n) / static_cast<float>(n));
    }
    const plan::BytesOfPacks results = plan::simulate(plan, {{kElements}, {}}, inputs);
    for (const plan::Bytes& result : results.at(0)) {
      EXPECT_TRUE(testing::same_bits(DType::kFloat32, result, std::as_bytes(std::span(expected)))) << n;
    }
  }
}

}  // namespace
}  // namespace onesum::collective
