// Every algorithm and hierarchy is proved: on many layouts, for every kind of type, with replicas in any
// order; and a rank's part of a plan is that rank's part.
#include "collective/all_reduce.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/in_words.h"
#include "collective/proving.h"

namespace onesum::collective {
namespace {

TEST(AllReduce, EverySchemeIsProvedOnSmallLayouts) {
  expect_proved(Grid{{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3}, {1, 2, 3}, 0, 15});
}

TEST(AllReduce, EverySchemeIsProvedForEveryKindOfType) {
  constexpr DType kTypes[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,  DType::kInt8,
                              DType::kInt64,   DType::kUInt64,   DType::kComplex64};
  const std::vector<Layout> layouts = {{2, 3, {}}, {3, 2, {}}, {5, 1, {}}, {4, 3, {}}, {1, 3, {}}};
  std::uint32_t turn = 0;
  for (const Scheme& named : all_schemes()) {
    for (const Layout& layout : layouts) {
      for (const DType dtype : kTypes) {
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
          for (const bool fast : {false, true}) {
            Case tried{layout, named, op, dtype};
            tried.scheme.fast = fast;
            tried.scheme.shards = 1 + turn % 2;
            tried.scheme.number = turn % 7;
            tried.in_place = turn++ % 3 != 0;
            expect_proved(tried);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// The rounding of a result stands first; anywhere else it is that of a partial sum.
bool rounds_partial_sums(const std::string& words, const std::string& type) {
  return words.find(type + "(", 1) != std::string::npos;
}

TEST(AllReduce, RoundsPartialSumsOf16BitsOnlyIfFast) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const Scheme& named : all_schemes()) {
      for (const Layout& layout : {Layout{3, 2, {}}, Layout{5, 1, {}}, Layout{2, 3, {5, 0, 3, 1, 4, 2}}}) {
        for (const bool fast : {false, true}) {
          Case tried{layout, named, ReduceOp::kMean, dtype};
          tried.scheme.fast = fast;
          SCOPED_TRACE(tried.name());
          const plan::Plan plan = tried.plan();
          bool rounds = false;
          const std::vector<std::vector<std::string>> results = results_in_words(plan);
          for (const std::string& words : results.at(0)) {
            rounds = rounds || rounds_partial_sums(words, std::string(to_string(dtype)));
          }
          EXPECT_TRUE(fast || !rounds);
          const bool says_so = plan.order.find("rounded") != std::string::npos;
          EXPECT_TRUE(says_so || !rounds) << plan.order;
        }
      }
    }
  }
}

TEST(AllReduce, EverySchemeIsProvedWhereverTheReplicasAre) {
  std::uint32_t turn = 0;
  for (const Scheme& named : all_schemes()) {
    for (const Layout& layout : odd_layouts()) {
      for (const std::uint32_t shards : {1U, 2U, 3U}) {
        Case tried{layout, named};
        tried.scheme.shards = shards;
        tried.scheme.number = turn % 5;
        tried.scheme.fast = turn % 4 == 0;
        tried.dtype = turn % 2 == 0 ? DType::kFloat16 : DType::kFloat32;
        tried.in_place = turn++ % 3 == 0;
        expect_proved(tried);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(AllReduce, ARanksPartIsWhatItDoesInTheWholePlan) {
  std::vector<Layout> layouts = {{1, 3, {}}, {2, 2, {}}, {3, 1, {}}, {5, 2, {}}, {4, 3, {}}, {7, 1, {}}};
  for (const Layout& odd : odd_layouts()) layouts.push_back(odd);
  for (const Scheme& named : all_schemes()) {
    for (std::uint32_t i = 0; i < layouts.size(); ++i) {
      Case tried{layouts[i], named, ReduceOp::kMean, i % 2 == 0 ? DType::kFloat16 : DType::kInt8};
      tried.scheme.shards = 1 + i % 3;
      tried.scheme.number = i;
      tried.in_place = i % 2 == 0;
      SCOPED_TRACE(tried.name());
      const Topology topology = tried.layout.topology();
      const plan::Plan whole = tried.plan();
      for (std::int32_t rank = 0; rank < tried.layout.workers; ++rank) {
        const plan::Plan part = all_reduce(topology, tried.task(), tried.scheme, rank);
        ASSERT_EQ(steps_of_rank(part, rank), steps_of_rank(whole, rank)) << "rank " << rank;
        for (const plan::Lane& lane : part.lanes) ASSERT_EQ(lane.rank, rank);
        ASSERT_EQ(part.packs, whole.packs);
        ASSERT_EQ(part.order, whole.order);
      }
    }
  }
}

TEST(AllReduce, SchemesAreNamedAsTheyAreWritten) {
  for (const Scheme& named : all_schemes()) {
    for (const std::uint32_t shards : {1U, 4U}) {
      Scheme scheme = named;
      scheme.shards = shards;
      const std::string text = to_string(scheme);
      const std::string name = text.substr(0, text.find('#'));
      EXPECT_EQ(scheme_named(name, shards), scheme) << text;
    }
  }
  for (const char* wrong : {"", "/", "ring", "nccl/", "/nccl", "nccl/nccl/nccl", "nccl#2", "auto", "XRING"}) {
    EXPECT_EQ(scheme_named(wrong, 1), std::nullopt) << wrong;
  }
}

// The number of a pack matters only as far as it changes the plan.
TEST(AllReduce, NumbersThatGiveTheSamePlanGiveTheSameScheme) {
  for (const Scheme& named : all_schemes()) {
    for (const Layout& layout : {Layout{3, 2, {}}, Layout{2, 3, {0, 1, 3}}, Layout{5, 1, {}}}) {
      const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, false);
      const Topology topology = layout.topology();
      for (const std::uint32_t shards : {1U, 2U}) {
        for (std::size_t number = 0; number < 40; ++number) {
          Scheme as_is = named;
          as_is.shards = shards;
          as_is.number = number;
          const Scheme kept = with_number(as_is, topology, task, number);
          EXPECT_LE(kept.number, number);
          EXPECT_LT(kept.number, 6U);
          ASSERT_EQ(all_reduce(topology, task, kept), all_reduce(topology, task, as_is))
              << to_string(as_is) << " on " << layout.name() << " number " << number;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onesum::collective
