// The bench's own idea of a right result.
#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_pattern.h"

namespace onesum::cli {
namespace {

template <class T>
std::vector<T> filled(const Pattern& pattern, std::size_t replica, std::size_t count, std::size_t phase = 0) {
  std::vector<T> values(count);
  pattern.fill(std::as_writable_bytes(std::span(values)), replica, phase);
  return values;
}

template <class T>
Difference difference(const Pattern& pattern, const std::vector<T>& values, std::size_t phase = 0) {
  return pattern.difference(std::as_bytes(std::span(values)), phase);
}

template <class T>
bool is_right(const Pattern& pattern, const std::vector<T>& values, std::size_t phase = 0) {
  return difference(pattern, values, phase).elements == 0;
}

constexpr std::size_t kCount = 20000;  // more than a period

TEST(Pattern, SumsInTheCanonicalOrder) {
  const Pattern pattern(ReduceOp::kSum, DType::kFloat32, 6);
  std::vector<std::vector<float>> r;
  for (std::size_t replica = 0; replica < 6; ++replica)
    r.push_back(filled<float>(pattern, replica, kCount, 5));
  std::vector<float> canonical(kCount);
  std::vector<float> left_to_right(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    canonical[i] = ((r[0][i] + r[1][i]) + (r[2][i] + r[3][i])) + (r[4][i] + r[5][i]);
    left_to_right[i] = ((((r[0][i] + r[1][i]) + r[2][i]) + r[3][i]) + r[4][i]) + r[5][i];
  }
  EXPECT_TRUE(is_right(pattern, canonical, 5));
  EXPECT_FALSE(is_right(pattern, left_to_right, 5));
  EXPECT_FALSE(is_right(pattern, canonical, 6));
}

TEST(Pattern, MeanOfIntegersIsAFloat) {
  const Pattern pattern(ReduceOp::kMean, DType::kInt16, 3);
  std::vector<float> mean(kCount);
  for (std::size_t replica = 0; replica < 3; ++replica) {
    const auto values = filled<std::int16_t>(pattern, replica, kCount);
    for (std::size_t i = 0; i < kCount; ++i) mean[i] += static_cast<float>(values[i]);
  }
  for (float& value : mean) value /= 3;
  EXPECT_TRUE(is_right(pattern, mean));
}

TEST(Pattern, OfTheOtherOperations) {
  const Pattern product(ReduceOp::kProduct, DType::kFloat32, 3);
  const Pattern least(ReduceOp::kMin, DType::kInt16, 3);
  const Pattern greatest(ReduceOp::kMax, DType::kFloat64, 3);
  const Pattern bits(ReduceOp::kBitXor, DType::kUInt8, 3);
  std::vector<float> products(kCount);
  std::vector<std::int16_t> minima(kCount, 32767);
  std::vector<double> maxima(kCount, -1e300);
  std::vector<std::uint8_t> parities(kCount, 0);
  std::vector<std::vector<float>> f;
  for (std::size_t replica = 0; replica < 3; ++replica) {
    f.push_back(filled<float>(product, replica, kCount));
    const auto shorts = filled<std::int16_t>(least, replica, kCount);
    const auto doubles = filled<double>(greatest, replica, kCount);
    const auto bytes = filled<std::uint8_t>(bits, replica, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      minima[i] = std::min(minima[i], shorts[i]);
      maxima[i] = std::max(maxima[i], doubles[i]);
      parities[i] = static_cast<std::uint8_t>(parities[i] ^ bytes[i]);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) products[i] = f[0][i] * f[1][i] * f[2][i];
  EXPECT_TRUE(is_right(product, products));
  EXPECT_TRUE(is_right(least, minima));
  EXPECT_TRUE(is_right(greatest, maxima));
  EXPECT_TRUE(is_right(bits, parities));
  EXPECT_FALSE(is_right(Pattern(ReduceOp::kMax, DType::kInt16, 3), minima));
}

// Numbers for orders that are not the canonical one: no part of a product is 0, whose sign would show it.
TEST(Pattern, ProductsOfWholeNumbersAreTheSameInAnyOrder) {
  const Pattern pattern(ReduceOp::kProduct, DType::kComplex64, 5, Values::kWhole);
  std::vector<std::complex<float>> product(kCount, 1);
  for (std::size_t replica = 5; replica-- > 0;) {  // the last first
    const auto values = filled<std::complex<float>>(pattern, replica, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::complex<float> a = product[i];
      const std::complex<float> b = values[i];
      product[i] = replica == 4 ? b
                                : std::complex<float>(a.real() * b.real() - a.imag() * b.imag(),
                                                      a.real() * b.imag() + a.imag() * b.real());
    }
  }
  EXPECT_TRUE(is_right(pattern, product));
}

TEST(Pattern, ReplicasAndElementsDiffer) {
  const Pattern pattern(ReduceOp::kSum, DType::kInt32, 2);
  const auto first = filled<std::int32_t>(pattern, 0, 100);
  EXPECT_NE(first, filled<std::int32_t>(pattern, 1, 100));
  EXPECT_NE(first[0], first[1]);
}

TEST(Pattern, CountsTheElementsThatDifferAndNamesTheFirst) {
  const Pattern pattern(ReduceOp::kSum, DType::kUInt32, 1);
  auto values = filled<std::uint32_t>(pattern, 0, kCount);
  EXPECT_TRUE(is_right(pattern, values));
  values[15000] = 0xabcdef01;
  values[19999] = 0xabcdef01;
  EXPECT_EQ(difference(pattern, values).elements, 2U);
  EXPECT_THAT(difference(pattern, values).first,
              ::testing::StartsWith("element 15000 is 0xabcdef01, expected 0x000000"));
}

TEST(Pattern, ASingleWrongBitShows) {
  const Pattern pattern(ReduceOp::kSum, DType::kFloat64, 1);
  auto values = filled<double>(pattern, 0, kCount);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &values[kCount - 1], sizeof bits);
  bits ^= 1;
  std::memcpy(&values[kCount - 1], &bits, sizeof bits);
  EXPECT_FALSE(is_right(pattern, values));
}

}  // namespace
}  // namespace onesum::cli
