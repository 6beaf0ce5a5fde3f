// docs/semantics.md, rules 2.2, 3.1, 3.2 and 3.6.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <onesum/dtype.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

struct TypeRow {
  DType dtype;
  const char* name;
  const char* short_name;
  std::size_t size;
  DType mean;
};
constexpr std::array<TypeRow, kNumDTypes> kTable = {{
    {DType::kBool, "bool", "b8", 1, DType::kBool},
    {DType::kUInt8, "uint8", "u8", 1, DType::kFloat32},
    {DType::kInt8, "int8", "i8", 1, DType::kFloat32},
    {DType::kUInt16, "uint16", "u16", 2, DType::kFloat32},
    {DType::kInt16, "int16", "i16", 2, DType::kFloat32},
    {DType::kUInt32, "uint32", "u32", 4, DType::kFloat64},
    {DType::kInt32, "int32", "i32", 4, DType::kFloat64},
    {DType::kUInt64, "uint64", "u64", 8, DType::kFloat64},
    {DType::kInt64, "int64", "i64", 8, DType::kFloat64},
    {DType::kFloat16, "float16", "f16", 2, DType::kFloat16},
    {DType::kBFloat16, "bfloat16", "bf16", 2, DType::kBFloat16},
    {DType::kFloat32, "float32", "f32", 4, DType::kFloat32},
    {DType::kFloat64, "float64", "f64", 8, DType::kFloat64},
    {DType::kComplex64, "complex64", "c64", 8, DType::kComplex64},
    {DType::kComplex128, "complex128", "c128", 16, DType::kComplex128},
}};

// 2.2
TEST(DType, NamesAndSizes) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    const TypeRow& row = kTable[i];
    EXPECT_EQ(static_cast<std::size_t>(row.dtype), i);
    EXPECT_EQ(to_string(row.dtype), row.name);
    EXPECT_EQ(size_of(row.dtype), row.size);
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_EQ(parse_dtype(row.short_name), row.dtype);
  }
  EXPECT_EQ(to_string(static_cast<DType>(77)), "unknown");
  EXPECT_EQ(size_of(static_cast<DType>(77)), 0U);
}

TEST(DType, RefusesUnknownNames) {
  expect_invalid([] { parse_dtype("float"); }, {"\"float\"", "float32", "bool", "complex128"});
  expect_invalid([] { parse_dtype(""); }, {"\"\""});
  expect_invalid([] { parse_dtype("Float32"); }, {"\"Float32\""});
  expect_invalid([] { parse_dtype("f32 "); }, {"\"f32 \""});
}

TEST(DType, TheSizesAreThoseOfTheCppTypes) {
  EXPECT_EQ(size_of(kDTypeOf<bool>), sizeof(bool));
  EXPECT_EQ(size_of(kDTypeOf<std::uint64_t>), sizeof(std::uint64_t));
  EXPECT_EQ(size_of(kDTypeOf<Float16>), sizeof(Float16));
  EXPECT_EQ(size_of(kDTypeOf<BFloat16>), sizeof(BFloat16));
  EXPECT_EQ(size_of(kDTypeOf<std::complex<double>>), sizeof(std::complex<double>));
}

// 3.2
TEST(ResultDType, OfEveryType) {
  for (const TypeRow& row : kTable) {
    if (row.dtype == DType::kBool) continue;
    EXPECT_EQ(result_dtype(ReduceOp::kSum, row.dtype), row.dtype) << row.name;
    EXPECT_EQ(result_dtype(ReduceOp::kMean, row.dtype), row.mean) << row.name;
  }
}

TEST(ResultDType, OfWhatIsNoSumIsTheInputs) {
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kBitAnd,
                            ReduceOp::kBitOr, ReduceOp::kBitXor}) {
    for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kInt16, DType::kInt64}) {
      EXPECT_EQ(result_dtype(op, dtype), dtype);
    }
  }
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      EXPECT_EQ(result_dtype(op, dtype), dtype);
    }
  }
  EXPECT_EQ(result_dtype(ReduceOp::kProduct, DType::kComplex64), DType::kComplex64);
}

TEST(ResultDType, WhatATypeHasNotIsRefusedWithWhatItHas) {
  expect_invalid([] { result_dtype(ReduceOp::kSum, DType::kBool); },
                 {"bool has no sum; it has product, min, max, bitand, bitor, bitxor"});
  expect_invalid([] { result_dtype(ReduceOp::kMean, DType::kBool); }, {"bool has no mean; it has product"});
  expect_invalid([] { result_dtype(ReduceOp::kMin, DType::kComplex64); },
                 {"complex64 has no min; it has sum, mean, product"});
  expect_invalid([] { result_dtype(ReduceOp::kMax, DType::kComplex128); }, {"complex128 has no max"});
  expect_invalid([] { result_dtype(ReduceOp::kBitXor, DType::kFloat32); },
                 {"float32 has no bitxor; it has sum, mean, product, min, max"});
  expect_invalid([] { result_dtype(ReduceOp::kBitAnd, DType::kBFloat16); }, {"bfloat16 has no bitand"});
  expect_invalid([] { result_dtype(ReduceOp::kBitOr, DType::kComplex64); }, {"complex64 has no bitor"});
}

// 3.1
TEST(ResultDType, TheOpIsCheckedFirst) {
  expect_invalid([] { result_dtype(static_cast<ReduceOp>(99), DType::kBool); },
                 {"reduce op 99", "sum, mean, product, min, max, bitand, bitor, bitxor"});
  expect_invalid([] { result_dtype(ReduceOp::kSum, static_cast<DType>(99)); }, {"dtype 99"});
}

// 3.6: 16-bit floats. The reference is arithmetic on doubles, which hold every value involved exactly.
double value_of_half(std::uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> 10) & 31U);
  const double fraction = bits & 1023U;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

bool is_half_finite(std::uint32_t bits) { return (bits & 0x7c00U) != 0x7c00U; }
bool is_half_nan(std::uint32_t bits) { return (bits & 0x7fffU) > 0x7c00U; }
bool is_bfloat_nan(std::uint32_t bits) { return (bits & 0x7fffU) > 0x7f80U; }

TEST(Float16, EveryValueBecomesTheSameFloatAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const float value = half.to_float();
    if (is_half_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(is_half_nan(Float16::from_float(value).bits)) << bits;
      continue;
    }
    if (is_half_finite(bits)) {
      ASSERT_EQ(value, value_of_half(bits)) << bits;
    } else {
      ASSERT_TRUE(std::isinf(value)) << bits;
    }
    ASSERT_EQ(std::signbit(value), (bits & 0x8000U) != 0) << bits;
    ASSERT_EQ(Float16::from_float(value), half) << bits;
  }
}

// Between each value and the next: just below, at and just above the middle.
TEST(Float16, RoundsToNearestEvenEverywhere) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = value_of_half(bits);
    const double high = bits + 1 == 0x7c00 ? 65536.0 : value_of_half(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more than a half has
    const std::uint32_t even = (bits & 1U) == 0 ? bits : bits + 1;
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const auto rounded = [&](float value) { return Float16::from_float(sign != 0 ? -value : value).bits; };
      ASSERT_EQ(rounded(std::nextafter(middle, 0.0F)), sign | bits) << bits;
      ASSERT_EQ(rounded(middle), sign | even) << bits;
      ASSERT_EQ(rounded(std::nextafter(middle, 1e9F)), sign | (bits + 1)) << bits;
    }
  }
}

TEST(Float16, LargeValuesBecomeInfinity) {
  EXPECT_EQ(Float16::from_float(65504).bits, 0x7bff);
  EXPECT_EQ(Float16::from_float(65519.996F).bits, 0x7bff);
  EXPECT_EQ(Float16::from_float(65520).bits, 0x7c00);
  EXPECT_EQ(Float16::from_float(-1e30F).bits, 0xfc00);
  EXPECT_EQ(Float16::from_float(std::numeric_limits<float>::infinity()).bits, 0x7c00);
}

TEST(Float16, SmallValuesKeepTheirSign) {
  EXPECT_EQ(Float16::from_float(0.0F).bits, 0);
  EXPECT_EQ(Float16::from_float(-0.0F).bits, 0x8000);
  EXPECT_EQ(Float16::from_float(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
}

TEST(BFloat16, EveryValueBecomesTheSameFloatAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 half{static_cast<std::uint16_t>(bits)};
    const float value = half.to_float();
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), bits << 16);
    if (is_bfloat_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(is_bfloat_nan(BFloat16::from_float(value).bits)) << bits;
    } else {
      ASSERT_EQ(BFloat16::from_float(value), half) << bits;
    }
  }
}

TEST(BFloat16, RoundsToNearestEvenEverywhere) {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const std::uint32_t even = (bits & 1U) == 0 ? bits : bits + 1;
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const auto rounded = [&](std::uint32_t rest) {
        return BFloat16::from_float(std::bit_cast<float>(((sign | bits) << 16) | rest)).bits;
      };
      ASSERT_EQ(rounded(1), sign | bits) << bits;
      ASSERT_EQ(rounded(0x7fff), sign | bits) << bits;
      ASSERT_EQ(rounded(0x8000), sign | even) << bits;
      ASSERT_EQ(rounded(0x8001), sign | (bits + 1)) << bits;
      ASSERT_EQ(rounded(0xffff), sign | (bits + 1)) << bits;
    }
  }
}

// A NaN whose payload sits in the bits that are dropped must not become infinity.
TEST(SixteenBitFloats, EveryKindOfNanStaysOne) {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    std::uint32_t payload = (random() >> (i % 23)) & 0x7fffffU;
    if (payload == 0) payload = 1;
    const std::uint32_t sign = (i & 1) != 0 ? 0x80000000U : 0U;
    const auto nan = std::bit_cast<float>(sign | 0x7f800000U | payload);
    ASSERT_TRUE(is_half_nan(Float16::from_float(nan).bits)) << payload;
    ASSERT_TRUE(is_bfloat_nan(BFloat16::from_float(nan).bits)) << payload;
  }
}

#ifdef __FLT16_MAX__
// The compiler's own type, on random floats.
TEST(Float16, AgreesWithTheCompiler) {
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Float16::from_float(value).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)))
        << value;
  }
}
#endif

}  // namespace
}  // namespace onesum
