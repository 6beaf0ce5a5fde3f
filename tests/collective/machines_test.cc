// `machines` wherever the machines are: proved, with the bits of the canonical sum, and with no more between
// machines than must be.
#include "collective/machines.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/in_words.h"
#include "collective/numbers.h"
#include "collective/proving.h"
#include "plan/crossing.h"

namespace onesum::collective {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Numbers = std::vector<std::int32_t>;

Case case_of(Layout layout, const char* scheme, std::uint32_t shards = 1) {
  return {std::move(layout), *scheme_named(scheme, shards)};
}

std::vector<Scheme> schemes_over_machines() {
  std::vector<Scheme> schemes = all_schemes();
  std::erase_if(schemes, [](const Scheme& scheme) { return scheme.across != Algorithm::kMachines; });
  return schemes;
}

// All ways to divide workers among machines, numbered by their first workers.
std::vector<Numbers> divisions(std::size_t workers) {
  std::vector<Numbers> all = {{}};
  for (std::size_t worker = 0; worker < workers; ++worker) {
    std::vector<Numbers> longer;
    for (const Numbers& some : all) {
      const std::int32_t fresh = some.empty() ? 0 : std::ranges::max(some) + 1;
      for (std::int32_t machine = 0; machine <= fresh; ++machine) {
        longer.push_back(some);
        longer.back().push_back(machine);
      }
    }
    all = std::move(longer);
  }
  return all;
}

TEST(Machines, AreProvedHoweverWorkersShareThem) {
  std::uint32_t turn = 0;
  for (std::int32_t workers = 1; workers <= 5; ++workers) {
    for (const Numbers& machines : divisions(static_cast<std::size_t>(workers))) {
      for (const char* scheme : {"machines", "nccl/machines"}) {
        Case tried = case_of({workers, 1 + static_cast<std::int32_t>(turn % 3), {}, false, machines}, scheme);
        tried.scheme.shards = 1 + turn % 2;
        tried.in_place = turn++ % 5 < 3;
        expect_proved(tried);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Machines, AreProvedInEveryHierarchyAndForEveryKindOfType) {
  constexpr DType kTypes[] = {DType::kFloat16, DType::kFloat32, DType::kInt8, DType::kComplex64};
  std::uint32_t turn = 0;
  for (const Scheme& named : schemes_over_machines()) {
    for (const Layout& layout : layouts_with_machines()) {
      for (const DType dtype : kTypes) {
        for (const bool fast : {false, true}) {
          Case tried{layout, named, turn % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean, dtype};
          tried.scheme.fast = fast;
          tried.scheme.shards = 1 + turn % 3;
          tried.in_place = turn++ % 5 < 3;
          expect_proved(tried);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Machines, GiveTheBitsOfTheCanonicalSum) {
  std::uint64_t seed = 1;
  for (const Layout& layout : layouts_with_machines()) {
    for (const char* scheme : {"machines", "nccl/machines", "pscpu/machines"}) {
      Case tried = case_of(layout, scheme, 1 + static_cast<std::uint32_t>(seed % 2));
      tried.dtype = seed % 3 == 0 ? DType::kBFloat16 : DType::kFloat32;
      tried.op = seed % 5 == 0 ? ReduceOp::kMean : ReduceOp::kSum;
      expect_canonical_sum(tried, 37, seed++);
    }
  }
}

// Sums of several workers are rounded on their way to another machine.
TEST(Machines, SayWhereFastNumericsRoundPartialSums) {
  const auto order_of = [](const Numbers& machines) {
    Case tried = case_of({4, 1, {}, false, machines}, "machines");
    tried.dtype = DType::kFloat16;
    tried.scheme.fast = true;
    const plan::Plan plan = tried.plan();
    const bool rounds = results_in_words(plan).at(0).at(0).find("float16(", 1) != std::string::npos;
    EXPECT_EQ(plan.order.find("rounded") != std::string::npos, rounds) << plan.order;
    return plan.order;
  };
  EXPECT_EQ(order_of({0, 0, 1, 1}), "canonical, partial sums rounded to 16 bits");
  EXPECT_EQ(order_of({0, 0, 0, 0}), "canonical");
  EXPECT_EQ(order_of({0, 1, 2, 3}), "canonical");
}

TEST(Machines, ARanksPartIsWhatItDoesInTheWholePlan) {
  for (const Scheme& named : schemes_over_machines()) {
    for (const Layout& layout : layouts_with_machines()) {
      Case tried{layout, named, ReduceOp::kMean, DType::kFloat16};
      tried.scheme.shards = 2;
      SCOPED_TRACE(tried.name());
      const plan::Plan whole = tried.plan();
      for (std::int32_t rank = 0; rank < layout.workers; ++rank) {
        const plan::Plan part = all_reduce(layout.topology(), tried.task(), tried.scheme, rank);
        ASSERT_EQ(steps_of_rank(part, rank), steps_of_rank(whole, rank)) << "rank " << rank;
      }
    }
  }
}

// Where there is nothing to be gained they are `direct`, step for step.
TEST(Machines, OfAllWorkersOrOfOneEachAreDirect) {
  const auto steps = [](const Layout& layout, const std::string& scheme, std::int32_t rank) {
    std::vector<std::string> lines = steps_of_rank(case_of(layout, scheme.c_str(), 2).plan(), rank);
    std::ranges::sort(lines);
    return lines;
  };
  for (Layout layout : {Layout{4, 1, {}}, Layout{3, 2, {}}, Layout{5, 3, {}, true}}) {
    for (const std::string inside : {"", "nccl/", "pscpu/"}) {
      Numbers own_machines(static_cast<std::size_t>(layout.workers));
      for (std::size_t w = 0; w < own_machines.size(); ++w) own_machines[w] = static_cast<std::int32_t>(w);
      const bool is_one_level = inside.empty() && layout.devices > 1;  // a worker then has several parties
      for (std::int32_t rank = 0; rank < layout.workers; ++rank) {
        layout.machines = {};
        const std::vector<std::string> direct = steps(layout, inside + "direct", rank);
        EXPECT_EQ(steps(layout, inside + "machines", rank), direct) << inside << layout.name();
        if (is_one_level) continue;
        layout.machines = own_machines;
        EXPECT_EQ(steps(layout, inside + "machines", rank), direct) << inside << layout.name();
      }
    }
  }
}

// The device that adds up each unit.
Numbers owners_of(const Layout& layout, const char* scheme) {
  Case tried = case_of(layout, scheme);
  tried.op = ReduceOp::kMean;
  const plan::Plan plan = tried.plan();
  std::map<std::uint32_t, std::int32_t> by_unit;
  for (const plan::Lane& lane : plan.lanes) {
    for (const plan::Step& step : lane.steps) {
      if (step.op == plan::Op::kReduce && step.divisor != 1)
        by_unit[plan.destinations(step).front().chunks.first] = step.device;
    }
  }
  Numbers owners;
  for (const auto& [unit, device] : by_unit) owners.push_back(device);
  return owners;
}

TEST(Machines, OwnUnitsRowByRow) {
  EXPECT_THAT(owners_of({4, 1, {}, false, {0, 0, 1, 1}}, "machines"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(owners_of({4, 1, {}, false, {0, 1, 0, 1}}, "machines"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(owners_of({4, 2, {}, false, {0, 0, 1, 1}}, "nccl/machines"), ElementsAre(0, 4, 2, 6));
  // Three rows of a machine of three; the other's one worker owns its unit of each.
  EXPECT_THAT(owners_of({4, 1, {}, false, {0, 0, 0, 1}}, "machines"), ElementsAre(0, 3, 1, 3, 2, 3));
  EXPECT_THAT(owners_of({5, 1, {}, false, {1, 0, 1, 0, 1}}, "machines"), ElementsAre(0, 1, 2, 3, 4, 1));
}

TEST(Machines, AddInTheOrderOfTheTree) {
  for (const Numbers& machines : {Numbers{0, 0, 1, 1}, Numbers{0, 1, 0, 1}, Numbers{0, 1, 1, 1}}) {
    const auto results = results_in_words(case_of({4, 1, {}, false, machines}, "machines").plan());
    ASSERT_EQ(results.size(), 4U);
    for (const auto& result : results) EXPECT_THAT(result, Each("((r0+r1)+(r2+r3))"));
  }
}

constexpr std::size_t kElements = 20160;  // divisible by whatever it is cut into
constexpr std::uint64_t kBytes = kElements * sizeof(float);

std::vector<std::uint64_t> bytes_between_machines(const Layout& layout, const char* scheme) {
  std::vector<std::uint64_t> bytes;
  for (const plan::LinkCost& sent :
       plan::sent_between_machines(case_of(layout, scheme).plan(), {{kElements}, {{}}}, layout.machines)) {
    bytes.push_back(sent.bytes);
  }
  return bytes;
}

// Each brings one sum, and gets one result, of what others own.
TEST(Machines, SendTheLeastThereCanBe) {
  for (const std::int32_t machines : {2, 3, 4}) {
    for (const std::int32_t each : {1, 2, 4}) {
      for (const std::int32_t devices : {1, 2}) {
        Layout layout{machines * each, devices, {}};
        for (std::int32_t w = 0; w < layout.workers; ++w) layout.machines.push_back(w / each);
        const auto count = static_cast<std::uint64_t>(machines);
        const std::uint64_t least = 2 * (count - 1) * kBytes / count;
        for (const char* scheme : {"machines", "nccl/machines"}) {
          EXPECT_THAT(bytes_between_machines(layout, scheme), Each(least)) << scheme << " " << layout.name();
        }
        EXPECT_THAT(bytes_between_machines(layout, "nccl/direct"), Each(least * layout.workers / count))
            << layout.name();
      }
    }
  }
}

// By turns, what a machine has are two terms: they cross one by one, and the results once.
TEST(Machines, SendEachTermOfWhatIsNoBranchOfTheTree) {
  const Layout by_turns{4, 2, {}, false, {0, 1, 0, 1}};
  EXPECT_THAT(bytes_between_machines(by_turns, "nccl/machines"), Each(3 * kBytes / 2));
  EXPECT_THAT(bytes_between_machines(by_turns, "nccl/direct"), Each(2 * kBytes));
}

}  // namespace
}  // namespace onesum::collective
