// Element types of tensors.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <onesum/export.h>
#include <onesum/options.h>

namespace onesum {

// The values are part of plans and wire formats: append only.
enum class DType : std::uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kUInt64,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
inline constexpr int kNumDTypes = 15;

// Storage of 16-bit floats, for Tensor::data<T>(). Conversions round to nearest even and keep NaN a NaN.
struct Float16 {
  std::uint16_t bits = 0;
  ONESUM_API static Float16 from_float(float value) noexcept;
  ONESUM_API float to_float() const noexcept;
  friend bool operator==(Float16, Float16) = default;  // of bits: -0 differs from 0, a NaN equals itself
};
struct BFloat16 {
  std::uint16_t bits = 0;
  ONESUM_API static BFloat16 from_float(float value) noexcept;
  ONESUM_API float to_float() const noexcept;
  friend bool operator==(BFloat16, BFloat16) = default;
};

// Bytes of one element.
ONESUM_API std::size_t size_of(DType dtype) noexcept;

// "float32", "bfloat16", "bool", …: the names NumPy uses.
ONESUM_API std::string_view to_string(DType dtype) noexcept;

// The inverse; also takes the short forms "f32", "bf16", "i64", "u8", "c64". Throws invalid_argument naming
// the text and the valid names.
ONESUM_API DType parse_dtype(std::string_view text);

// The type of a reduction's result: that of its input; but for MEAN 8- and 16-bit integers give float32, 32-
// and 64-bit ones float64. Throws invalid_argument for types that an operation does not take, naming those
// that it could be: bool has no SUM and MEAN, complex numbers no MIN and MAX, and only integers and bool have
// bits to combine.
ONESUM_API DType result_dtype(ReduceOp op, DType input);

// The DType of a C++ type: kDTypeOf<float> is DType::kFloat32.
template <class T>
inline constexpr DType kDTypeOf = T::this_type_has_no_dtype;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kDTypeOf<std::int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<std::uint16_t> = DType::kUInt16;
template <>
inline constexpr DType kDTypeOf<std::int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<std::uint32_t> = DType::kUInt32;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<std::uint64_t> = DType::kUInt64;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<Float16> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<std::complex<float>> = DType::kComplex64;
template <>
inline constexpr DType kDTypeOf<std::complex<double>> = DType::kComplex128;

}  // namespace onesum
