// `nccl` on GPUs: a vendor's library runs it, or the sums inside workers.
#include "collective/native.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "collective/in_words.h"
#include "collective/layouts.h"
#include "collective/streamed.h"
#include "plan/compose.h"
#include "plan/cost.h"
#include "plan/refusal.h"
#include "plan/simulate.h"
#include "plan/text.h"
#include "plan/timeline.h"
#include "plan/verify.h"

namespace onesum::collective {
namespace {

using plan::Op;
using plan::Plan;
using plan::Step;

const char* const kSchemes[] = {"nccl",         "nccl/nccl",  "nccl/xring",  "nccl/rechd",
                                "nccl/pscpu",   "nccl/psgpu", "nccl/direct", "nccl/hierarchical_copy",
                                "nccl/machines"};

// The layout's devices are GPUs, beside which every worker has its CPU.
Topology gpus(Layout layout) {
  layout.own_hosts = true;
  Topology topology = layout.topology();
  const std::int32_t count = layout.workers * layout.devices;
  topology.gpus.assign(topology.device_rank.size(), false);
  std::fill_n(topology.gpus.begin(), count, true);
  return topology;
}

Scheme named(const char* name, std::uint32_t shards) { return *scheme_named(name, shards); }

std::size_t count_native(const Plan& plan) {
  std::size_t count = 0;
  for (const plan::Lane& lane : plan.lanes) {
    count += static_cast<std::size_t>(std::ranges::count(lane.steps, Op::kNative, &Step::op));
  }
  return count;
}

// Whole numbers, whose sum has no order; in int32 they wrap.
plan::Bytes numbers(DType dtype, std::size_t replica, std::size_t elements) {
  plan::Bytes bytes(elements * 4);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<std::int32_t>((replica + 1) * (i + 3)) - 20;
    const auto real = static_cast<float>(value);
    std::memcpy(bytes.data() + 4 * i, dtype == DType::kInt32 ? static_cast<const void*>(&value) : &real, 4);
  }
  return bytes;
}

void expect_exact_sum(const Plan& plan, DType dtype, std::size_t replicas) {
  const std::size_t elements = std::size_t{num_chunks(plan.packs[0].split)} * 2 + 1;
  plan::BytesOfPacks inputs(1);
  std::vector<double> sums(elements, 0);
  for (std::size_t r = 0; r < replicas; ++r) {
    inputs[0].push_back(numbers(dtype, r, elements));
    for (std::size_t i = 0; i < elements; ++i) sums[i] += static_cast<double>((r + 1) * (i + 3)) - 20;
  }
  for (const std::uint64_t seed : {0U, 7U}) {
    plan::SimulateOptions options;
    options.seed = seed;
    const plan::BytesOfPacks results = plan::simulate(plan, {{elements}, {{}}}, inputs, options);
    for (const plan::Bytes& result : results.at(0)) {
      for (std::size_t i = 0; i < elements; ++i) {
        const double expected = sums[i] / static_cast<double>(plan.packs[0].divisor);
        if (dtype == DType::kInt32) {
          std::int32_t found = 0;
          std::memcpy(&found, result.data() + 4 * i, 4);
          ASSERT_EQ(found, static_cast<std::int32_t>(expected));
        } else {
          float found = 0;
          std::memcpy(&found, result.data() + 4 * i, 4);
          ASSERT_EQ(found, static_cast<float>(expected));
        }
      }
    }
  }
}

TEST(Native, IsProvedOnEveryLayout) {
  std::uint32_t turn = 0;
  for (const char* name : kSchemes) {
    for (const std::int32_t workers : {1, 2, 3, 4, 5, 8}) {
      for (const std::int32_t devices : {1, 2, 3, 4}) {
        for (const std::uint32_t shards : {1U, 2U}) {
          const bool mean = ++turn % 3 == 0;
          const DType dtype = mean || turn % 2 == 0 ? DType::kFloat32 : DType::kInt32;
          Layout layout{workers, devices, {}};
          for (std::int32_t w = 0; w < workers; ++w) layout.machines.push_back(w / 2);
          const Task task = layout.task(mean ? ReduceOp::kMean : ReduceOp::kSum, dtype, turn % 4 < 2);
          const Scheme scheme = named(name, shards);
          const Plan plan = all_reduce(gpus(layout), task, scheme);
          SCOPED_TRACE(to_string(scheme) + " on " + layout.name());
          ASSERT_EQ(plan::refusal(plan), "accepted") << plan::to_text(plan);
          ASSERT_EQ(plan::parse_text(plan::to_text(plan)), plan);
          EXPECT_EQ(plan.algorithm, to_string(scheme));

          const bool is_alone = scheme.across == Algorithm::kNccl;
          const auto ranks = static_cast<std::size_t>(workers);
          if (is_alone) {
            EXPECT_EQ(count_native(plan), workers * devices == 1 ? 0 : ranks * shards);
          } else {
            EXPECT_EQ(count_native(plan), devices == 1 ? 0 : 2 * ranks);
          }
          const bool native = count_native(plan) > 0;
          EXPECT_EQ(plan.order.find("native") != std::string::npos, native) << plan.order;
          EXPECT_EQ(is_canonical(gpus(layout), task, scheme), plan.order == "canonical");
          EXPECT_FALSE(native && plan::verify(plan).packs.at(0).canonical);
          expect_exact_sum(plan, dtype, task.replicas.size());
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Native, IsProvedWhereverTheReplicasAre) {
  for (const char* name : kSchemes) {
    for (const Layout& layout : odd_layouts()) {
      for (const std::uint32_t shards : {1U, 3U}) {
        const Task task = layout.task(ReduceOp::kMean, DType::kFloat16, shards == 1);
        const Scheme scheme = named(name, shards);
        const Plan plan = all_reduce(gpus(layout), task, scheme);
        ASSERT_EQ(plan::refusal(plan), "accepted") << to_string(scheme) << " on " << layout.name() << "\n"
                                                   << plan::to_text(plan);
        EXPECT_EQ(count_native(plan) > 0, plan.order.find("native") != std::string::npos);
        if (count_native(plan) > 0) {
          EXPECT_NE(plan.order.find("partial sums rounded to 16 bits"), std::string::npos) << plan.order;
        }
        // A rank's part is what it does in the whole plan.
        for (std::int32_t rank = 0; rank < layout.workers; ++rank) {
          const Plan part = all_reduce(gpus(layout), task, scheme, rank);
          std::size_t steps = 0, expected = 0;
          for (const plan::Lane& lane : part.lanes) steps += lane.rank == rank ? lane.steps.size() : 1000;
          for (const plan::Lane& lane : plan.lanes) expected += lane.rank == rank ? lane.steps.size() : 0;
          ASSERT_EQ(steps, expected);
        }
      }
    }
  }
}

TEST(Native, NamesItsOrder) {
  const Layout layout{3, 2, {}};
  const auto order_of = [&](const char* name, DType dtype) {
    return all_reduce(gpus(layout), layout.task(ReduceOp::kSum, dtype, false), named(name, 1)).order;
  };
  EXPECT_EQ(order_of("nccl", DType::kFloat32), "native");
  EXPECT_EQ(order_of("nccl", DType::kBFloat16), "native, partial sums rounded to 16 bits");
  EXPECT_EQ(order_of("nccl/xring", DType::kFloat32), "ring over workers' native sums");
  EXPECT_EQ(order_of("nccl/rechd", DType::kFloat16),
            "canonical over workers' native sums, partial sums rounded to 16 bits");
  EXPECT_EQ(order_of("rechd", DType::kFloat16), "canonical");
  EXPECT_EQ(order_of("psgpu/pscpu", DType::kFloat16), "canonical");
}

// What the library cannot do we do ourselves, as on CPUs.
TEST(Native, IsNotForEverything) {
  const Layout layout{2, 2, {}};
  const auto is_native_for = [&](ReduceOp op, DType dtype) {
    const Plan plan = all_reduce(gpus(layout), layout.task(op, dtype, false), named("nccl/rechd", 1));
    EXPECT_EQ(plan::refusal(plan), "accepted");
    EXPECT_EQ(plan.order == "canonical", count_native(plan) == 0) << plan.order;
    return count_native(plan) > 0;
  };
  for (const DType dtype :
       {DType::kUInt8, DType::kInt8, DType::kUInt32, DType::kInt32, DType::kUInt64, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_TRUE(is_native_for(ReduceOp::kSum, dtype)) << to_string(dtype);
  }
  for (const DType dtype : {DType::kInt16, DType::kUInt16, DType::kComplex64, DType::kComplex128}) {
    EXPECT_FALSE(is_native_for(ReduceOp::kSum, dtype)) << to_string(dtype);
  }
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64}) {  // the sum would wrap
    EXPECT_FALSE(is_native_for(ReduceOp::kMean, dtype)) << to_string(dtype);
  }
  EXPECT_TRUE(is_native_for(ReduceOp::kMean, DType::kFloat32));

  const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
  Topology mixed = gpus(layout);
  mixed.gpus[3] = false;
  EXPECT_FALSE(can_run_natively(mixed, task));
  EXPECT_FALSE(can_run_natively(layout.topology(), task));
  Task elsewhere = task;
  elsewhere.destinations.pop_back();
  EXPECT_FALSE(can_run_natively(gpus(layout), elsewhere));
}

// On CPUs `nccl` is what it always was.
TEST(Native, ChangesNothingWithoutGpus) {
  for (const Scheme& scheme : all_schemes()) {
    const Layout layout{3, 2, {}};
    const Task task = layout.task(ReduceOp::kMean, DType::kFloat16, false);
    Topology without = gpus(layout);
    without.gpus.assign(without.device_rank.size(), false);
    Layout own_hosts = layout;
    own_hosts.own_hosts = true;
    const Plan plan = all_reduce(without, task, scheme);
    EXPECT_EQ(plan, all_reduce(own_hosts.topology(), task, scheme)) << to_string(scheme);
    EXPECT_EQ(count_native(plan), 0U);
    EXPECT_TRUE(plan.groups.empty());
  }
}

TEST(Native, CostsTheSameWithoutBeingStored) {
  for (const char* name : kSchemes) {
    for (const std::uint32_t shards : {1U, 2U}) {
      const Layout layout{4, 2, {}};
      const Task task = layout.task(ReduceOp::kMean, DType::kFloat32, false);
      const Scheme scheme = named(name, shards);
      const plan::Sizes sizes{{100000}, {{}}};
      const plan::Cost stored = plan::cost(all_reduce(gpus(layout), task, scheme), sizes);
      const StreamedAllReduce streamed(gpus(layout), task, scheme);
      const plan::Cost found = plan::timeline(streamed.lanes(), sizes);
      EXPECT_EQ(found.seconds, stored.seconds) << name;
      EXPECT_EQ(found.steps, stored.steps) << name;
      EXPECT_EQ(found.native.bytes, stored.native.bytes) << name;
      EXPECT_GT(found.native.bytes, 0U);
    }
  }
  // One step a rank: thousands of them are no matter.
  const Layout large{2000, 1, {}};
  const StreamedAllReduce streamed(gpus(large), large.task(ReduceOp::kSum, DType::kFloat32, false),
                                   named("nccl", 1));
  EXPECT_EQ(plan::timeline(streamed.lanes(), {{1000}, {{}}}).native.steps, 2000U);
  const Layout pairs{1000, 2, {}};
  const StreamedAllReduce rechd(gpus(pairs), pairs.task(ReduceOp::kSum, DType::kFloat32, false),
                                named("nccl/rechd", 1));
  EXPECT_EQ(plan::timeline(rechd.lanes(), {{1000}, {{}}}).native.steps, 2000U);
}

// All native steps of a rank stay in one order.
TEST(Native, PlansSideBySideAreProved) {
  const Layout layout{3, 2, {}};
  const Task task = layout.task(ReduceOp::kMean, DType::kFloat32, false);
  std::vector<Plan> plans;
  for (const char* name : kSchemes) plans.push_back(all_reduce(gpus(layout), task, named(name, 3)));
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(plan::refusal(plan::side_by_side(plans)), "accepted");
    EXPECT_EQ(plan::refusal(plan::in_sequence(plans)), "accepted");
    std::ranges::rotate(plans, plans.begin() + 3);
  }
}

// Faults in real plans; tests/plan has those of single steps.
TEST(Native, FaultsAreRefused) {
  const Layout layout{3, 2, {}};
  for (const char* name : kSchemes) {
    for (const bool in_place : {false, true}) {
      const Plan right =
          all_reduce(gpus(layout), layout.task(ReduceOp::kMean, DType::kFloat32, in_place), named(name, 2));
      for (std::size_t lane = 0; lane < right.lanes.size(); ++lane) {
        for (std::size_t i = 0; i < right.lanes[lane].steps.size(); ++i) {
          if (right.lanes[lane].steps[i].op != Op::kNative) continue;
          const auto expect_refused = [&](const char* what, auto&& commit) {
            Plan plan = right;
            commit(plan, plan.lanes[lane].steps);
            plan::lay_out_operands(plan);
            EXPECT_NE(plan::refusal(plan), "accepted")
                << name << ": lane " << lane << " step " << i << " " << what << "\n"
                << plan::to_text(right);
          };
          const auto at = static_cast<std::ptrdiff_t>(i);
          expect_refused("is missing", [&](Plan&, auto& steps) { steps.erase(steps.begin() + at); });
          expect_refused("lacks a source", [&](Plan&, auto& steps) { --steps[i].num_sources; });
          expect_refused("is last", [&](Plan&, auto& steps) {
            if (i + 1 == steps.size())
              std::rotate(steps.begin(), steps.end() - 1, steps.end());
            else
              std::rotate(steps.begin() + at, steps.begin() + at + 1, steps.end());
          });
          expect_refused("is another collective", [&](Plan&, auto& steps) {
            steps[i].collective =
                static_cast<plan::Collective>((static_cast<int>(steps[i].collective) + 1) % 3);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace onesum::collective
