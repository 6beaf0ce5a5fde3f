// Reductions with a caller's own function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sides.h"

namespace onesum::testing {

// What replica `replica` holds there, in uneven_ints.
std::int32_t number_of(int replica, std::size_t element);
PerReplica uneven_ints(const Side& side, std::int64_t elements);

// Of int32 tensors; gives another result for every other order of them.
Tensor chain(std::span<const Tensor> components);
std::int32_t chained(std::int32_t sum, std::int32_t next);

// Many calls with it. Some tensors have no room in what two workers share and travel in parts.
std::vector<Mirrored> function_sums(const Side& side);

}  // namespace onesum::testing
