// Elements as the GPU's kernels see them: types of memory and accumulators, conversions, sums.
//
// Plain C++ that gives the same bits on any machine with IEEE arithmetic, so that what nvcc compiles for the
// GPU can be tested on the host. Types are named as base/element.h prints them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/cuda/reduce_arguments.h"

namespace onesum::engine::cuda::element_types {

// NOLINTBEGIN(readability-identifier-naming)
__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;
using uint8 = std::uint8_t;
using int8 = std::int8_t;
using uint16 = std::uint16_t;
using int16 = std::int16_t;
using uint32 = std::uint32_t;
using int32 = std::int32_t;
using uint64 = std::uint64_t;
using int64 = std::int64_t;
using float32 = float;
using float64 = double;
struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};
struct complex64 {
  float real, imaginary;
};
struct complex128 {
  double real, imaginary;
};
// NOLINTEND(readability-identifier-naming)

template <class To, class From>
ONESUM_HOST_DEVICE To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// Scaling by 2^112 moves the exponent's bias from 15 to 127, of subnormals too, and is exact.
ONESUM_HOST_DEVICE float widen(float16 value) {
  const std::uint32_t magnitude = (value.bits & 0x7FFFU) << 13;
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const auto scaled = same_bits<std::uint32_t>(same_bits<float>(magnitude) * 0x1p112F);
  const std::uint32_t special = magnitude | 0x7F800000U;
  return same_bits<float>((magnitude < 0x0F800000U ? scaled : special) | sign);
}

ONESUM_HOST_DEVICE float widen(bfloat16 value) {
  return same_bits<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Rounding is to nearest even.
ONESUM_HOST_DEVICE float16 round_to_float16(float value) {
  const auto bits = same_bits<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t result;
  if (magnitude > 0x7F800000U) {
    result = 0x7E00;  // NaN
  } else if (magnitude > 0x477FFFFFU) {
    result = 0x7C00;  // 65536 and more
  } else if (magnitude < 113U << 23) {
    // Below 2^-14: adding 1/2 rounds at bit 2^-24.
    result = same_bits<std::uint32_t>(same_bits<float>(magnitude) + 0.5F) - (126U << 23);
  } else {
    // What is more than 65504 and a half step carries into the exponent of infinity.
    const std::uint32_t odd = magnitude >> 13 & 1U;
    result = (magnitude - (112U << 23) + 0xFFFU + odd) >> 13;
  }
  return {static_cast<std::uint16_t>(result | sign)};
}

ONESUM_HOST_DEVICE bfloat16 round_to_bfloat16(float value) {
  const auto bits = same_bits<std::uint32_t>(value);
  const std::uint32_t odd = bits >> 16 & 1U;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  // Rounding could make an infinity of a NaN.
  const std::uint32_t result = is_nan ? bits | 0x400000U : bits + 0x7FFFU + odd;
  return {static_cast<std::uint16_t>(result >> 16)};
}

// Rounded once: the upper 64 bits that are not zero, the lowest of them set if any below is, have more bits
// than a float keeps, and are scaled exactly.
template <class Float>
ONESUM_HOST_DEVICE Float round_to(uint128 value) {
  const auto upper = static_cast<std::uint64_t>(value >> 64);
  if (upper == 0) return static_cast<Float>(static_cast<std::uint64_t>(value));
  unsigned shift = 1;
  for (unsigned step = 32; step > 0; step /= 2) {
    if (upper >> (shift + step - 1) != 0) shift += step;
  }
  const std::uint64_t kept = static_cast<std::uint64_t>(value >> shift);
  const bool is_inexact = value << (128 - shift) != 0;
  const Float scale = shift == 64 ? Float{0x1p64F} : static_cast<Float>(std::uint64_t{1} << shift);
  return static_cast<Float>(kept | static_cast<std::uint64_t>(is_inexact)) * scale;
}
template <class Float>
ONESUM_HOST_DEVICE Float round_to(int128 value) {
  const auto bits = static_cast<uint128>(value);
  return value < 0 ? -round_to<Float>(0 - bits) : round_to<Float>(bits);
}

template <class To, class From>
ONESUM_HOST_DEVICE To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return widen(from);
  } else if constexpr (std::is_same_v<To, float16>) {
    return round_to_float16(from);
  } else if constexpr (std::is_same_v<To, bfloat16>) {
    return round_to_bfloat16(from);
  } else if constexpr (std::is_floating_point_v<To> && sizeof(From) == 16) {
    return round_to<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

// Integers wrap.
template <class T>
ONESUM_HOST_DEVICE T add(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    return left + right;
  } else if constexpr (sizeof(T) == 16) {
    return static_cast<T>(static_cast<uint128>(left) + static_cast<uint128>(right));
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  } else {
    return static_cast<T>(static_cast<std::uint32_t>(left) + static_cast<std::uint32_t>(right));
  }
}

template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// Integers wrap.
template <class T>
ONESUM_HOST_DEVICE T multiply(T left, T right) {
  if constexpr (kIsComplex<T>) {
    return {left.real * right.real - left.imaginary * right.imaginary,
            left.real * right.imaginary + left.imaginary * right.real};
  } else if constexpr (std::is_floating_point_v<T>) {
    return left * right;
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
  } else {
    return static_cast<T>(static_cast<std::uint32_t>(left) * static_cast<std::uint32_t>(right));
  }
}

// A NaN wins, and -0 is less than +0: the bits of both orders together, as the host's kernels have it.
template <class T>
ONESUM_HOST_DEVICE T least(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    const T one = left < right ? left : right;
    const T other = right < left ? right : left;
    return same_bits<T>(same_bits<Bits>(one) | same_bits<Bits>(other));
  } else {
    return left < right ? left : right;
  }
}
template <class T>
ONESUM_HOST_DEVICE T greatest(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    return -least(-left, -right);
  } else {
    return left < right ? right : left;
  }
}

template <class T, T (*kCombine)(T, T), std::size_t kCount>
ONESUM_HOST_DEVICE void combine_each(const T (&left)[kCount], const T (&right)[kCount], T (&to)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) to[i] = kCombine(left[i], right[i]);
}
template <class T>
ONESUM_HOST_DEVICE T bits_of_both(T left, T right) {
  return static_cast<T>(left & right);
}
template <class T>
ONESUM_HOST_DEVICE T bits_of_any(T left, T right) {
  return static_cast<T>(left | right);
}
template <class T>
ONESUM_HOST_DEVICE T bits_of_one(T left, T right) {
  return static_cast<T>(left ^ right);
}

// Everything but sums, for all elements the same; what a type has not gives something that it has.
template <class T, std::size_t kCount>
ONESUM_HOST_DEVICE void combine(Combine how, const T (&left)[kCount], const T (&right)[kCount],
                                T (&to)[kCount]) {
  if constexpr (kIsComplex<T>) {
    combine_each<T, multiply<T>>(left, right, to);
  } else if (how == Combine::kProduct) {
    combine_each<T, multiply<T>>(left, right, to);
  } else if (how == Combine::kMin) {
    combine_each<T, least<T>>(left, right, to);
  } else if constexpr (!std::is_unsigned_v<T>) {
    combine_each<T, greatest<T>>(left, right, to);
  } else if (how == Combine::kMax) {
    combine_each<T, greatest<T>>(left, right, to);
  } else if (how == Combine::kBitAnd) {
    combine_each<T, bits_of_both<T>>(left, right, to);
  } else if (how == Combine::kBitOr) {
    combine_each<T, bits_of_any<T>>(left, right, to);
  } else {
    combine_each<T, bits_of_one<T>>(left, right, to);
  }
}

// The sum of floats is divided before it is rounded to the output, that of integers after its conversion.
template <class Output, class Accumulator>
ONESUM_HOST_DEVICE Output finish(Accumulator sum, std::int64_t divisor) {
  if constexpr (std::is_floating_point_v<Accumulator>) {
    if (divisor != 1) sum = sum / static_cast<Accumulator>(divisor);
    return convert<Output>(sum);
  } else {
    auto result = convert<Output>(sum);
    if constexpr (std::is_floating_point_v<Output>) {
      if (divisor != 1) result = result / static_cast<Output>(divisor);
    }
    return result;
  }
}

}  // namespace onesum::engine::cuda::element_types
