// Simulates the plans of all-reduces on nasty numbers. Shared by the fast and the full test.
#pragma once

#include <cstddef>
#include <vector>

#include "collective/proving.h"
#include "plan/simulate.h"

namespace onesum::collective {

// What every result holds; checks that all hold the same bits.
plan::Bytes simulated_result(const Case& tried, const std::vector<plan::Bytes>& replicas,
                             std::uint64_t seed = 0);

// A canonical plan, or any of integers, gives the bits of the canonical sum.
void expect_canonical_sum(const Case& tried, std::size_t elements, std::uint64_t seed);

// Every layout of `replicas` devices, every scheme without a ring, in 1, 2 and 3 shards: the result is one
// and the same, that of the canonical order. Runs every `stride`th of them, from the `first`th on.
void expect_one_result(std::int32_t replicas, const std::vector<DType>& dtypes, std::size_t first,
                       std::size_t stride);

}  // namespace onesum::collective
