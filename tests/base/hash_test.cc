#include "base/hash.h"

#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace onesum {
namespace {

Fingerprint of(const std::vector<std::uint64_t>& words) {
  Hasher hasher;
  for (const std::uint64_t word : words) hasher.add(word);
  return hasher.finish();
}

Fingerprint of_text(const std::vector<std::string>& texts) {
  Hasher hasher;
  for (const std::string& text : texts) hasher.add(text);
  return hasher.finish();
}

// Fingerprints are compared between processes: they may change with a version, but not by accident.
TEST(Hasher, GivesTheSameOnEveryMachine) {
  EXPECT_EQ(of({}), (Fingerprint{0x93e501bd5b09cb58ULL, 0x5c85aebf45102e91ULL}));
  EXPECT_EQ(of({1, 2, 3}), (Fingerprint{0x2c8d2e2518466696ULL, 0xd940dc71c6ff2b13ULL}));
  EXPECT_EQ(of_text({"/job:localhost", "CPU"}), (Fingerprint{0x88c8198db7fc7904ULL, 0x983eb715a82282bfULL}));
}

TEST(Hasher, OrderLengthAndZerosCount) {
  EXPECT_NE(of({1, 2}), of({2, 1}));
  EXPECT_NE(of({}), of({0}));
  EXPECT_NE(of({0}), of({0, 0}));
  EXPECT_NE(of({5}), of({5, 0}));
}

TEST(Hasher, TextsKeepTheirBorders) {
  EXPECT_NE(of_text({"ab", "c"}), of_text({"a", "bc"}));
  EXPECT_NE(of_text({"", "a"}), of_text({"a", ""}));
  EXPECT_NE(of_text({std::string("a\0", 2)}), of_text({"a"}));
  EXPECT_NE(of_text({"12345678"}), of_text({"123456789"}));
  EXPECT_EQ(of_text({"123456789"}), of_text({"123456789"}));
}

TEST(Hasher, MayGoOnAfterFinish) {
  Hasher hasher;
  hasher.add(1);
  EXPECT_EQ(hasher.finish(), of({1}));
  hasher.add(2);
  EXPECT_EQ(hasher.finish(), of({1, 2}));
}

// Small numbers in small positions are what plans are made of: no two alike, in either half.
TEST(Hasher, SmallSequencesAreAllDifferent) {
  std::set<std::uint64_t> low;
  std::set<std::uint64_t> high;
  std::size_t count = 0;
  for (std::uint64_t a = 0; a < 40; ++a) {
    for (std::uint64_t b = 0; b < 40; ++b) {
      for (std::uint64_t c = 0; c < 40; ++c, ++count) {
        const Fingerprint fingerprint = of({a, b, c});
        low.insert(fingerprint.low);
        high.insert(fingerprint.high);
      }
    }
  }
  EXPECT_EQ(low.size(), count);
  EXPECT_EQ(high.size(), count);
}

// One flipped bit of a word changes about half of the 128, wherever the word stands.
TEST(Hasher, EveryBitReachesAllOthers) {
  for (std::size_t position = 0; position < 3; ++position) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      int changed = 0;
      for (std::uint64_t seed = 1; seed <= 64; ++seed) {
        std::vector<std::uint64_t> words = {seed, seed * 3, seed * 7};
        const Fingerprint before = of(words);
        words[position] ^= std::uint64_t{1} << bit;
        const Fingerprint after = of(words);
        changed += std::popcount(before.low ^ after.low) + std::popcount(before.high ^ after.high);
      }
      EXPECT_NEAR(changed / 64.0, 64.0, 12.0) << "word " << position << " bit " << bit;
    }
  }
}

}  // namespace
}  // namespace onesum
