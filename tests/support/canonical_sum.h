// For tests: reductions in the canonical order, by the plainest code and without anything of src.
#pragma once

#include <cstddef>
#include <vector>

#include <onesum/dtype.h>
#include <onesum/options.h>

namespace onesum::testing {

// What an operation makes of replicas of this type, whose bytes these are: element by element, by recursion
// over the tree that splits n at the largest power of two below n (docs/semantics.md, 3.3).
std::vector<std::byte> canonical_result(ReduceOp op, DType dtype,
                                        const std::vector<std::vector<std::byte>>& replicas);

}  // namespace onesum::testing
