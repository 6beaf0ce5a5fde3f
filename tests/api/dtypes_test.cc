// docs/semantics.md, section 3. Types of results, and sums and means of integers.
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;

template <class T>
std::vector<T> sum_of(const std::vector<T>& replicas) {
  ReductionToOneDevice ops;
  return contents<T>(ops.reduce(ReduceOp::kSum, testing::scalars(replicas), "CPU:0"));
}

template <class Result, class T>
Result mean_of(const std::vector<T>& replicas) {
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kMean, testing::scalars(replicas), "CPU:0");
  EXPECT_EQ(result.tensor().dtype(), kDTypeOf<Result>);
  return result.tensor().data<Result>()[0];
}

// 3.2
TEST(ResultTypes, OfEveryType) {
  ReductionToOneDevice ops;
  for (const DType dtype : testing::kSummable) {
    for (const std::size_t n : {1U, 2U, 3U}) {
      const PerReplica value = testing::random_value(dtype, Shape{3}, testing::cpus(n), 1);
      EXPECT_EQ(ops.reduce(ReduceOp::kSum, value, value).tensor(0).dtype(), dtype);
      DType mean = dtype;
      if (dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kUInt16 ||
          dtype == DType::kInt16) {
        mean = DType::kFloat32;
      } else if (dtype == DType::kUInt32 || dtype == DType::kInt32 || dtype == DType::kUInt64 ||
                 dtype == DType::kInt64) {
        mean = DType::kFloat64;
      }
      EXPECT_EQ(ops.reduce(ReduceOp::kMean, value, value).tensor(0).dtype(), mean) << to_string(dtype);
    }
  }
}

// 8.10
TEST(ResultTypes, BoolHasNone) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::scalars<bool>({true, false});
  testing::expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, value); }, {"value", "bool", "sum"});
  testing::expect_invalid([&] { ops.reduce(ReduceOp::kMean, value, value); }, {"value", "bool", "mean"});
  testing::expect_invalid([&] { ops.reduce(ReduceOp::kSum, testing::scalars<bool>({true}), value); },
                          {"bool"});
}

// 9.4
TEST(Means, OfKnownIntegers) {
  EXPECT_EQ((mean_of<double, std::int32_t>({1, 2})), 1.5);
  EXPECT_EQ((mean_of<float, std::int8_t>({1, 2})), 1.5F);
  EXPECT_EQ((mean_of<double, std::int32_t>({7})), 7.0);
  EXPECT_EQ((mean_of<float, std::int8_t>({127, 127})), 127.0F);
  EXPECT_EQ((mean_of<double, std::int64_t>(std::vector<std::int64_t>(4, std::int64_t{1} << 62))), 0x1p62);
  EXPECT_EQ((mean_of<double, std::uint32_t>({1, 0, 0})), 1.0 / 3);
  EXPECT_EQ((mean_of<float, std::uint8_t>({1, 0, 0})), 1.0F / 3);
}

template <class T>
void expect_sum_wraps() {
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(sum_of<T>({Limits::max(), T{1}}), std::vector<T>{Limits::min()});
  EXPECT_EQ(sum_of<T>({Limits::max(), Limits::max()}), std::vector<T>{static_cast<T>(-2)});
  EXPECT_EQ(sum_of<T>({Limits::min(), static_cast<T>(-1)}), std::vector<T>{Limits::max()});
  EXPECT_EQ(sum_of<T>(std::vector<T>(5, Limits::max())), std::vector<T>{static_cast<T>(Limits::max() - 4)});
}

// 3.7, 9.5
TEST(Sums, OfIntegersWrap) {
  EXPECT_EQ(sum_of<std::int8_t>({127, 1}), std::vector<std::int8_t>{-128});
  EXPECT_EQ(sum_of<std::uint8_t>({255, 2}), std::vector<std::uint8_t>{1});
  expect_sum_wraps<std::uint8_t>();
  expect_sum_wraps<std::int8_t>();
  expect_sum_wraps<std::uint16_t>();
  expect_sum_wraps<std::int16_t>();
  expect_sum_wraps<std::uint32_t>();
  expect_sum_wraps<std::int32_t>();
  expect_sum_wraps<std::uint64_t>();
  expect_sum_wraps<std::int64_t>();
}

template <class T, class Result>
void expect_mean_is_exact() {
  using Limits = std::numeric_limits<T>;
  for (const std::size_t n : {1U, 2U, 3U, 5U, 8U, 17U}) {
    EXPECT_EQ((mean_of<Result, T>(std::vector<T>(n, Limits::max()))), static_cast<Result>(Limits::max()))
        << n;
    EXPECT_EQ((mean_of<Result, T>(std::vector<T>(n, Limits::min()))), static_cast<Result>(Limits::min()))
        << n;
  }
  EXPECT_EQ((mean_of<Result, T>({Limits::max(), Limits::min()})),
            Limits::is_signed ? Result{-0.5} : static_cast<Result>(Limits::max()) / 2);
}

// 3.7
TEST(Means, OfIntegersNeverWrap) {
  expect_mean_is_exact<std::uint8_t, float>();
  expect_mean_is_exact<std::int8_t, float>();
  expect_mean_is_exact<std::uint16_t, float>();
  expect_mean_is_exact<std::int16_t, float>();
  expect_mean_is_exact<std::uint32_t, double>();
  expect_mean_is_exact<std::int32_t, double>();
}

// The sum is exact, then rounded to float64, then divided.
TEST(Means, Of64BitIntegersAreSummedExactly) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kUMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((mean_of<double, std::int64_t>({kMax, kMin, 1, 0})), 0.0);
  EXPECT_EQ((mean_of<double, std::int64_t>({kMax, kMin})), -0.5);
  EXPECT_EQ((mean_of<double, std::int64_t>({kMax, kMax})), 0x1p63);
  EXPECT_EQ((mean_of<double, std::int64_t>({kMin, kMin, kMin, kMin})), -0x1p63);
  EXPECT_EQ((mean_of<double, std::uint64_t>({kUMax, kUMax, kUMax})), 0x1p64);
  EXPECT_EQ((mean_of<double, std::uint64_t>({kUMax, 1})), 0x1p63);
  EXPECT_EQ((mean_of<double, std::uint64_t>(std::vector<std::uint64_t>(33, kUMax))), 0x1p64);
  // 2^53 + 1 is no double: rounding each before adding would lose both ones.
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ((mean_of<double, std::int64_t>({kOdd, kOdd})), 0x1p53);
  EXPECT_EQ((mean_of<double, std::int64_t>({kOdd, kOdd, -(std::int64_t{1} << 54)})), 2.0 / 3);
  // A tie in the sum, broken by its last bit.
  EXPECT_EQ((mean_of<double, std::int64_t>({std::int64_t{1} << 54, 2, 1, 0})), (0x1p54 + 4) / 4);
}

// 3.5
TEST(Means, OfComplexDivideBothParts) {
  using Complex = std::complex<float>;
  EXPECT_EQ((mean_of<Complex, Complex>({{1, 2}, {2, -5}})), Complex(1.5F, -1.5F));
  using Wide = std::complex<double>;
  EXPECT_EQ((mean_of<Wide, Wide>({{1, 0}, {0, 1}, {0, 0}})), Wide(1.0 / 3, 1.0 / 3));
}

// 3.6
TEST(Sums, OfFloatsOverflowAsTheirSumDoes) {
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_EQ(sum_of<float>({kMax, kMax})[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ((mean_of<float, float>({kMax, kMax})), std::numeric_limits<float>::infinity());
  // 16-bit floats are summed in float32: their mean does not overflow.
  const Float16 largest{0x7bff};
  EXPECT_EQ((mean_of<Float16, Float16>({largest, largest, largest})), largest);
  EXPECT_EQ(sum_of<Float16>({largest, largest})[0].bits, 0x7c00);
  const Float16 large = Float16::from_float(60000);
  EXPECT_EQ(sum_of<Float16>({large, large})[0].bits, 0x7c00);
  EXPECT_EQ((mean_of<Float16, Float16>({large, large})), large);
}

}  // namespace
}  // namespace onesum
