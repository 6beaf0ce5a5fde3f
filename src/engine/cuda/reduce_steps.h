// The order in which a kernel takes sources: from the tree of a form to steps.
//
// Addition is commutative, so of two operands the one that is formed first may be either. With the one first
// that needs more waiting sums, no tree over n sources needs more than log2(n), whatever it looks like.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/cuda/reduce_arguments.h"

namespace onesum::engine::cuda {

struct ReduceSteps {
  static constexpr std::size_t kMaxSources = ReduceArguments::kWords;

  // `merges` is a valid tree over at most kMaxSources; `is_wide` has a flag for each source, or none.
  ReduceSteps(std::span<const std::uint8_t> merges, std::span<const std::uint8_t> is_wide) noexcept;

  std::size_t num_sources = 0;
  std::size_t num_steps = 0;
  std::array<ReduceStep, kMaxSources> steps;
  std::array<std::uint16_t, kMaxSources> order;  // the sources, as the steps take them
};

}  // namespace onesum::engine::cuda
