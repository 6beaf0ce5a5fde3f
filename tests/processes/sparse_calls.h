// Sums of IndexedSlices whose rows are merged, and of values that mix them with dense tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "sides.h"

namespace onesum::testing {

// Rows of replica `replica`: values that another order of additions would change, at indices of which some
// occur twice, in other replicas too; none at all in every fourth replica.
IndexedSlices random_slices(int replica, const Device& device, DType dtype, std::uint64_t seed);

// Many calls, of every class that has its own way of doing them.
std::vector<Mirrored> merged_sums(const Side& side);
std::vector<Mirrored> mixed_sums(const Side& side);

}  // namespace onesum::testing
