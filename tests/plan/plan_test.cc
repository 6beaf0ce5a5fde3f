// Splits, and the canonical order of additions.
#include "plan/plan.h"

#include <bit>
#include <string>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/builder.h"

namespace onesum::plan {
namespace {

std::vector<std::size_t> lengths(const Split& split, std::size_t length) {
  std::vector<std::size_t> all;
  for (std::uint32_t i = 0; i < num_chunks(split); ++i)
    all.push_back(extent_of(split, length, {}, {i, 1}).length);
  return all;
}

using Lengths = std::vector<std::size_t>;

TEST(Split, RaggedGivesTheRemainderToTheLastPart) {
  EXPECT_EQ(lengths({{SplitRule::kRagged, 3}}, 91), (Lengths{30, 30, 31}));
  EXPECT_EQ(lengths({{SplitRule::kRagged, 4}}, 10), (Lengths{2, 2, 2, 4}));
  EXPECT_EQ(lengths({{SplitRule::kRagged, 4}}, 3), (Lengths{0, 0, 0, 3}));
  EXPECT_EQ(lengths({{SplitRule::kRagged, 4}}, 0), (Lengths{0, 0, 0, 0}));
}

TEST(Split, PaddedHasEqualPartsAndShorterLastOnes) {
  EXPECT_EQ(lengths({{SplitRule::kPadded, 2}}, 1), (Lengths{1, 0}));
  EXPECT_EQ(lengths({{SplitRule::kPadded, 4}}, 5), (Lengths{2, 2, 1, 0}));
  EXPECT_EQ(lengths({{SplitRule::kPadded, 6}}, 8), (Lengths{2, 2, 2, 2, 0, 0}));
  EXPECT_EQ(lengths({{SplitRule::kPadded, 16}}, 91)[0], 6u);
  EXPECT_EQ(lengths({{SplitRule::kPadded, 32}}, 64)[31], 2u);
}

TEST(Split, NoLevelIsOneChunk) { EXPECT_EQ(lengths({}, 7), Lengths{7}); }

TEST(Split, LevelsNest) {
  EXPECT_EQ(lengths({{SplitRule::kRagged, 2}, {SplitRule::kPadded, 3}}, 11), (Lengths{2, 2, 1, 2, 2, 2}));
}

TEST(Split, ChunksCoverTheVectorWithoutGaps) {
  const std::vector<Split> splits = {
      {},
      {{SplitRule::kRagged, 5}},
      {{SplitRule::kPadded, 5}},
      {{SplitRule::kPadded, 3}, {SplitRule::kRagged, 4}},
      {{SplitRule::kRagged, 2}, {SplitRule::kRagged, 2}, {SplitRule::kPadded, 3}}};
  for (const Split& split : splits) {
    for (std::size_t length = 0; length < 200; ++length) {
      std::size_t end = 0;
      const std::uint32_t chunks = num_chunks(split);
      for (std::uint32_t i = 0; i < chunks; ++i) {
        const Extent extent = extent_of(split, length, {}, {i, 1});
        // A part that the one before it left nothing for may begin anywhere up to its end.
        if (extent.length > 0) {
          ASSERT_EQ(extent.offset, end);
        }
        end += extent.length;
        ASSERT_EQ(extent_of(split, length, {}, {0, i + 1}), (Extent{0, end}));
        ASSERT_EQ(extent_of(split, length, {}, {i, chunks - i}).offset +
                      extent_of(split, length, {}, {i, chunks - i}).length,
                  length);
      }
      ASSERT_EQ(end, length);
    }
  }
}

TEST(Split, CountsAreWhatEachReplicaBrings) {
  const Split split = {{SplitRule::kCounts, 3}};
  const std::vector<std::size_t> counts = {4, 0, 2};
  EXPECT_EQ(extent_of(split, 0, counts, {0, 1}), (Extent{0, 4}));
  EXPECT_EQ(extent_of(split, 0, counts, {1, 2}), (Extent{4, 2}));
  EXPECT_EQ(extent_of(split, 0, counts, {0, 3}), (Extent{0, 6}));
  EXPECT_THROW(extent_of(split, 0, std::span(counts).first(2), {2, 1}), Error);
}

// The definition: split n at the largest power of two below n.
std::string canonical(std::size_t first, std::size_t n) {
  if (n == 1) return std::to_string(first);
  const std::size_t left = std::bit_floor(n - 1);
  return "(" + canonical(first, left) + "+" + canonical(first + left, n - left) + ")";
}

// What the merges mean: a stack.
std::string evaluate(std::span<const std::uint32_t> widths, std::span<const std::uint8_t> merges) {
  std::vector<std::string> stack;
  std::size_t first = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    stack.push_back(canonical(first, widths[i]));
    first += widths[i];
    for (std::uint8_t m = 0; m < merges[i]; ++m) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  return stack.size() == 1 ? stack.front() : "no single sum";
}

TEST(CanonicalMerges, AreTheTreeOfTheDefinition) {
  for (std::size_t n = 1; n <= 64; ++n) {
    const std::vector<std::uint32_t> widths(n, 1);
    EXPECT_EQ(evaluate(widths, canonical_merges(n)), canonical(0, n)) << n;
  }
  EXPECT_EQ(canonical_merges(4), (std::vector<std::uint8_t>{0, 1, 0, 2}));
}

// All ways to cut the tree over n replicas into subtrees already summed.
void cuts(std::size_t n, std::vector<std::vector<std::uint32_t>>& all) {
  all = {{static_cast<std::uint32_t>(n)}};
  if (n == 1) return;
  const std::size_t left = std::bit_floor(n - 1);
  std::vector<std::vector<std::uint32_t>> lefts, rights;
  cuts(left, lefts);
  cuts(n - left, rights);
  for (const auto& a : lefts) {
    for (const auto& b : rights) {
      all.push_back(a);
      all.back().insert(all.back().end(), b.begin(), b.end());
    }
  }
}

TEST(CanonicalMerges, TakePartialSums) {
  EXPECT_EQ(canonical_merges(std::vector<std::uint32_t>{2, 1, 1, 2}),
            (std::vector<std::uint8_t>{0, 0, 2, 1}));
  for (std::size_t n = 1; n <= 14; ++n) {
    std::vector<std::vector<std::uint32_t>> all;
    cuts(n, all);
    for (const auto& widths : all)
      ASSERT_EQ(evaluate(widths, canonical_merges(widths)), canonical(0, n)) << n;
  }
}

TEST(CanonicalMerges, RefuseWhatIsNoSubtree) {
  const std::vector<std::vector<std::uint32_t>> wrong = {{1, 2}, {1, 2, 1}, {3, 3}, {2, 3, 1},
                                                         {0, 1}, {1, 0},    {1, 3}};
  for (const auto& widths : wrong) {
    EXPECT_THROW(canonical_merges(widths), Error) << widths[0] << "," << widths[1];
  }
}

TEST(Builder, LaysOperandsOutByLaneWhateverTheOrderOfCalls) {
  const auto build = [](bool second_lane_first) {
    Builder builder("two", {0, 0});
    Pack pack;
    pack.replicas = {0, 1};
    pack.destinations = {0, 1};
    builder.add_pack(pack);
    builder.add_lane(0);
    builder.add_lane(0);
    for (std::int32_t i = 0; i < 2; ++i) builder.input(0, i, Element::kFloat32);
    for (std::int32_t i = 0; i < 2; ++i) builder.output(0, i);
    for (int i = 0; i < 2; ++i) {
      const std::int32_t lane = second_lane_first ? 1 - i : i;
      builder.copy(lane, lane, {{builder.whole(2 + lane)}}, builder.whole(lane));
    }
    return std::move(builder).take();
  };
  EXPECT_EQ(build(false), build(true));
}

}  // namespace
}  // namespace onesum::plan
