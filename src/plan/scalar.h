// The arithmetic of one reduce step, one element after the other: the reference that kernels are compared
// with.
//
// Plain code, no vectors, no tricks. Sums and products of integers wrap; complex numbers are multiplied as
// (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each part rounded as written. Of minima and maxima a NaN wins,
// and -0 is less than +0. 16-bit floats are loaded into the accumulator exactly and rounded to nearest even
// when stored. With an integer accumulator the sum is converted to the destination's type and divided there;
// otherwise it is divided in the accumulator (both parts of a complex number) and then converted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/combine.h"
#include "base/element.h"

namespace onesum::plan {

struct ScalarSource {
  const std::byte* data = nullptr;
  Element element = Element::kFloat32;
  std::uint8_t merges = 0;  // plan.h, Operand
};

struct ScalarDestination {
  std::byte* data = nullptr;
  Element element = Element::kFloat32;
};

struct ScalarReduce {
  Element accumulator = Element::kFloat32;
  std::int64_t divisor = 1;
  std::span<const ScalarSource> sources;
  std::span<const ScalarDestination> destinations;  // one may be exactly a source
  std::size_t count = 0;                            // elements
  Combine combine = Combine::kSum;
};

// Throws invalid_argument for what an accumulator has not (base/combine.h) and for conversions without
// meaning (plan/rules.h).
void reduce_elements(const ScalarReduce& reduce);

}  // namespace onesum::plan
