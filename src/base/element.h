// Element types as plans and kernels see them: every DType, plus the wider types in which sums are formed.
//
// An Element with a DType's number is that type. The additional ones exist inside plans only (partial sums of
// a MEAN of 64-bit integers); no tensor has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <onesum/dtype.h>

namespace onesum {

enum class Element : std::uint8_t {
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
  kInt128,
  kUInt128,
};
inline constexpr int kNumElements = 17;

constexpr Element element_of(DType dtype) noexcept { return static_cast<Element>(dtype); }

std::size_t size_of(Element element) noexcept;
std::string_view to_string(Element element) noexcept;                  // "float32", …, "int128", "uint128"
std::optional<Element> parse_element(std::string_view text) noexcept;  // exact names only

// The type in which a result is formed: for SUM, MEAN and PRODUCT 16-bit floats in float32; for MEAN integers
// in 64 bits, those of 64 bits in 128; everything else in its own type (integers wrap).
Element accumulator_of(ReduceOp op, Element input) noexcept;

// Whether every value of `from` is a value of `to`: such a conversion loses nothing.
bool widens_to(Element from, Element to) noexcept;

}  // namespace onesum
