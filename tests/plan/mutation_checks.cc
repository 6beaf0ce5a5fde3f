#include "plan/mutation_checks.h"

#include <iostream>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "plan/compose.h"
#include "plan/mutants.h"
#include "plan/numbers.h"
#include "plan/sample_plans.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::plan {

std::vector<Plan> sample_bases() {
  const sample::Types sum = sample::types_of(ReduceOp::kSum, DType::kFloat32);
  const sample::Types half = sample::types_of(ReduceOp::kMean, DType::kFloat16);
  std::vector<Plan> plans = {
      sample::one_device(4, sum, true),
      sample::one_device_over_temp(3, half),
      sample::two_lanes(half),
      sample::two_lanes(sum, false),
      sample::ring(3, sum),
      sample::ring(4, half),
      sample::halving_doubling(4, sum, true),
      sample::halving_doubling(4, half),
      sample::direct(3, half, true),
      sample::direct(3, sample::types_of(ReduceOp::kMean, DType::kInt64)),
      sample::direct_in_lanes(3, sum),
      sample::chain_broadcast(3, Element::kInt16),
      sample::ring_gather(3, Element::kFloat32),
      sample::scatter(3, half),
      sample::ring_all_gather(3, Element::kInt16),
  };
  const std::vector<Plan> parts = {sample::ring(2, sum), sample::direct(2, half),
                                   sample::halving_doubling(2, sum)};
  plans.push_back(side_by_side(parts, LaneUse::kSeparate));
  const std::vector<Plan> lanes = {sample::two_lanes(half, false), sample::two_lanes(sum, false)};
  plans.push_back(in_sequence(lanes));
  return plans;
}

std::vector<Plan> algorithm_bases() {
  const auto task_of = [](std::int32_t replicas, bool half, bool in_place) {
    collective::Task task;
    const Element element = half ? Element::kFloat16 : Element::kFloat32;
    task.output = element;
    task.divisor = half ? replicas : 1;
    for (std::int32_t r = 0; r < replicas; ++r) {
      task.replicas.push_back({r, element});
      task.destinations.push_back({r, in_place ? r : -1});
    }
    return task;
  };
  std::vector<Plan> plans;
  const collective::Topology six{{0, 0, 1, 1, 2, 2}, {0, 2, 4}, {}, {0, 0, 1}};
  const collective::Topology five{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {}, {0, 1, 0, 1, 1}};
  for (const char* name :
       {"nccl", "xring", "rechd", "pscpu", "psgpu", "direct", "hierarchical_copy", "exchange", "nccl/xring",
        "xring/direct", "pscpu/pscpu", "nccl/rechd", "nccl/hierarchical_copy", "machines", "nccl/machines",
        "doubling", "nccl/doubling", "pool", "nccl/pool"}) {
    const bool half = plans.size() % 4 < 2;
    plans.push_back(all_reduce(six, task_of(6, half, !half), *collective::scheme_named(name, 2)));
    plans.push_back(all_reduce(five, task_of(5, !half, half), *collective::scheme_named(name, 1)));
  }
  // The same devices as GPUs.
  const collective::Topology gpus{six.device_rank, six.hosts, std::vector<bool>(6, true)};
  for (const char* name : {"nccl", "nccl/xring", "nccl/rechd", "nccl/pscpu", "nccl/hierarchical_copy"}) {
    for (const bool half : {false, true}) {
      const std::uint32_t shards = half ? 1 : 2;
      plans.push_back(all_reduce(gpus, task_of(6, half, half), *collective::scheme_named(name, shards)));
    }
  }
  return plans;
}

namespace {

std::optional<Proof> try_verify(const Plan& plan) {
  try {
    return verify(plan);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string readable(const Plan& plan) {
  try {
    return to_text(plan);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

void check_mutants(const std::vector<Plan>& bases, std::uint64_t seed, int per_plan, int runs) {
  std::mt19937_64 random(seed);
  int mutants = 0, accepted = 0;
  for (const Plan& base : bases) {
    for (int i = 0; i < per_plan; ++i) {
      Mutant mutant = mutate(base, random);
      while (mutant.plan == base) mutant = mutate(base, random);
      ++mutants;
      const std::optional<Proof> proof = try_verify(mutant.plan);
      if (!proof) continue;
      ++accepted;
      const numbers::Problem problem = numbers::make(mutant.plan, *proof, random());
      ASSERT_EQ(numbers::check(mutant.plan, problem, random(), runs), "")
          << "seed " << seed << ": verify accepts a mutant that " << mutant.what << ":\n"
          << readable(mutant.plan);
    }
  }
  std::cout << "seed " << seed << ": " << mutants << " mutants, " << accepted
            << " accepted, all of them right\n";
  EXPECT_GT(accepted, mutants / 100);
  EXPECT_LT(accepted, mutants / 2);
}

}  // namespace onesum::plan
