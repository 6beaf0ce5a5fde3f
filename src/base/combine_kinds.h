// The kinds of Combine (base/combine.h) by themselves: what code for GPUs can include.
#pragma once

#include <cstdint>

namespace onesum {

// The values are part of plans: append only.
enum class Combine : std::uint8_t {
  kSum,
  kProduct,  // of bool: and
  kMin,      // a NaN wins; -0 is less than +0
  kMax,
  kBitAnd,
  kBitOr,
  kBitXor,
};
inline constexpr int kNumCombines = 7;

}  // namespace onesum
