#include "base/amounts.h"

#include <vector>

#include <gtest/gtest.h>

namespace onesum {
namespace {

TEST(Amounts, OfBytesAndTimeAreReadable) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(std::size_t{8} << 20), "8 MiB");
  EXPECT_EQ(format_bytes(102228128), "97.5 MiB");
  EXPECT_EQ(format_time(85.2e-9), "85.2 ns");
  EXPECT_EQ(format_time(0.99999e-6), "1.00 µs");
  EXPECT_EQ(format_time(145.3e-6), "145 µs");
  EXPECT_EQ(format_time(0.0123), "12.3 ms");
  EXPECT_EQ(format_time(2.5), "2.50 s");
}

TEST(Amounts, OfThingsHaveAPlural) {
  EXPECT_EQ(counted(0, "pack"), "0 packs");
  EXPECT_EQ(counted(1, "pack"), "1 pack");
  EXPECT_EQ(counted(161, "tensor"), "161 tensors");
  EXPECT_EQ(format_range(3, 3), "3");
  EXPECT_EQ(format_range(3, 7), "3 to 7");
}

TEST(Numbered, JoinsNeighbours) {
  const auto packs = [](const std::vector<std::size_t>& numbers) { return numbered("pack", numbers); };
  EXPECT_EQ(packs({3}), "pack 3");
  EXPECT_EQ(packs({0, 1}), "packs 0 to 1");
  EXPECT_EQ(packs({0, 1, 2, 3, 5}), "packs 0 to 3 and 5");
  EXPECT_EQ(packs({0, 2, 5, 6, 7}), "packs 0, 2 and 5 to 7");
  EXPECT_EQ(packs({0, 2, 4, 6}), "packs 0, 2, 4 and 6");
  EXPECT_EQ(packs({0, 2, 4, 6, 8, 9, 11, 12}), "packs 0, 2, 4, … 11 to 12");
}

TEST(Grouped, PutsTogetherWhatIsSaidAlike) {
  const std::vector<Alike> parity =
      grouped(5, [](std::size_t i) { return std::string(i % 2 == 0 ? "even" : "odd"); });
  ASSERT_EQ(parity.size(), 2U);
  EXPECT_EQ(parity[0].words, "even");
  EXPECT_EQ(parity[0].numbers, (std::vector<std::size_t>{0, 2, 4}));
  EXPECT_EQ(parity[1].words, "odd");
  EXPECT_EQ(parity[1].numbers, (std::vector<std::size_t>{1, 3}));
}

}  // namespace
}  // namespace onesum
