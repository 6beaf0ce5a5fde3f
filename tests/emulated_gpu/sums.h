// Sums as a ring forms them: cut into as many chunks as there are ranks, each chunk added around the ring
// from another rank on, and rounded to the type after each addition. So they differ from those of a balanced
// tree, and from chunk to chunk.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <nccl.h>

namespace onesum::emulated {

// 0 for what is not added here.
std::size_t size_of(ncclDataType_t dtype);

std::vector<std::byte> sum_of(std::span<const std::vector<std::byte>> brought, ncclDataType_t dtype,
                              std::size_t count);

}  // namespace onesum::emulated
