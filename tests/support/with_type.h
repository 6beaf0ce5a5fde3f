// For tests: from a DType to the C++ type of its elements.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include <onesum/dtype.h>

namespace onesum::testing {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_complex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Calls f with a zero of the type; everything but bool.
template <class F>
auto with_type(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kUInt8:
      return f(std::uint8_t{});
    case DType::kInt8:
      return f(std::int8_t{});
    case DType::kUInt16:
      return f(std::uint16_t{});
    case DType::kInt16:
      return f(std::int16_t{});
    case DType::kUInt32:
      return f(std::uint32_t{});
    case DType::kInt32:
      return f(std::int32_t{});
    case DType::kUInt64:
      return f(std::uint64_t{});
    case DType::kInt64:
      return f(std::int64_t{});
    case DType::kFloat16:
      return f(Float16{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(std::complex<float>{});
    case DType::kComplex128:
      return f(std::complex<double>{});
    default:
      return f(float{});
  }
}

}  // namespace onesum::testing
