#include <array>
#include <bit>
#include <string>

#include <onesum/dtype.h>
#include <onesum/error.h>

#include "base/combine.h"
#include "base/text.h"

namespace onesum {
namespace {

struct TypeFacts {
  std::string_view name;
  std::string_view short_name;
  std::size_t size;
};

// By the number of the DType.
constexpr std::array<TypeFacts, kNumDTypes> kTypes = {{
    {"bool", "b8", 1},
    {"uint8", "u8", 1},
    {"int8", "i8", 1},
    {"uint16", "u16", 2},
    {"int16", "i16", 2},
    {"uint32", "u32", 4},
    {"int32", "i32", 4},
    {"uint64", "u64", 8},
    {"int64", "i64", 8},
    {"float16", "f16", 2},
    {"bfloat16", "bf16", 2},
    {"float32", "f32", 4},
    {"float64", "f64", 8},
    {"complex64", "c64", 8},
    {"complex128", "c128", 16},
}};

constexpr bool is_known(DType dtype) noexcept { return static_cast<std::size_t>(dtype) < kTypes.size(); }

DType mean_dtype(DType input) noexcept {
  switch (input) {
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kUInt16:
    case DType::kInt16:
      return DType::kFloat32;
    case DType::kUInt32:
    case DType::kInt32:
    case DType::kUInt64:
    case DType::kInt64:
      return DType::kFloat64;
    default:
      return input;
  }
}

// `value` without its lowest `dropped` bits (1 to 31), rounded to nearest, ties to even.
constexpr std::uint32_t rounded_shift(std::uint32_t value, std::uint32_t dropped) noexcept {
  const std::uint32_t kept = value >> dropped;
  const std::uint32_t rest = value & ((1U << dropped) - 1);
  const std::uint32_t half = 1U << (dropped - 1);
  return kept + (rest > half || (rest == half && (kept & 1U) != 0) ? 1U : 0U);
}

}  // namespace

std::size_t size_of(DType dtype) noexcept {
  return is_known(dtype) ? kTypes[static_cast<std::size_t>(dtype)].size : 0;
}

std::string_view to_string(DType dtype) noexcept {
  return is_known(dtype) ? kTypes[static_cast<std::size_t>(dtype)].name : "unknown";
}

DType parse_dtype(std::string_view text) {
  std::array<std::string_view, kTypes.size()> names;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (text == kTypes[i].name || text == kTypes[i].short_name) return static_cast<DType>(i);
    names[i] = kTypes[i].name;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "dtype " + quoted(text) + " is not known; expected " + listed(names));
}

DType result_dtype(ReduceOp op, DType input) {
  if (op > kLastReduceOp) {
    throw Error(ErrorCode::kInvalidArgument, "reduce op " + std::to_string(static_cast<int>(op)) +
                                                 " is not known; expected one of " + reduce_op_names());
  }
  if (!is_known(input)) {
    throw Error(ErrorCode::kInvalidArgument,
                "dtype " + std::to_string(static_cast<int>(input)) + " is not known");
  }
  if (!is_defined(combine_of(op), element_of(input))) {
    throw Error(ErrorCode::kInvalidArgument, why_undefined(op, input));
  }
  return op == ReduceOp::kMean ? mean_dtype(input) : input;
}

// Layouts: float32 has 8 exponent bits (bias 127) and 23 of fraction, float16 5 (bias 15) and 10.
Float16 Float16::from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {  // NaN: made quiet, so that it stays one when payload bits are dropped
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  } else if (magnitude >= 0x477ff000U) {  // from 65520, halfway to the next power of two, on: infinity
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // from 2^-14 on: normal; a carry out of the fraction is right
    half = rounded_shift(magnitude - (112U << 23), 13);
  } else if (magnitude > 0x33000000U) {  // above 2^-25, half of the smallest subnormal
    const std::uint32_t exponent = magnitude >> 23;
    half = rounded_shift((magnitude & 0x7fffffU) | 0x800000U, 126 - exponent);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

float Float16::to_float() const noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  // Subnormal: fraction · 2^-24, normal as a float32.
  const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 21;
  return std::bit_cast<float>(sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ffU) << 13));
}

BFloat16 BFloat16::from_float(float value) noexcept {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((word >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>(rounded_shift(word, 16))};
}

float BFloat16::to_float() const noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace onesum
