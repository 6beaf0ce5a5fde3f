// Numbers whose sum depends on the order of additions; support/canonical_sum.h says what it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <onesum/dtype.h>

#include "plan/simulate.h"

namespace onesum::collective {

// float16, bfloat16, float32, float64, complex64, complex128, int8, int64, uint64.
const std::vector<DType>& types_with_sums();
bool is_exact(DType dtype);  // integers: any order gives the same

// Replicas of 1e8, 1, -1e8, exponents that go up and down, subnormals; integers of any bits.
std::vector<plan::Bytes> nasty_replicas(DType dtype, std::size_t replicas, std::size_t elements,
                                        std::uint64_t seed);

plan::Bytes bytes_of_floats(const std::vector<float>& values);
std::vector<float> floats_of_bytes(const plan::Bytes& bytes);

}  // namespace onesum::collective
