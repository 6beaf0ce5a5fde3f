// Passes: the building blocks of reduce kernels. A pass reads each of its sources once, adds (or else
// combines) them in canonical order and writes each destination once. Kernels for other trees are made of
// several passes over blocks that stay in the first-level cache (tree_kernel-inl.h).
//
// A pass is a Kernel: it takes divisor, destinations and streaming from the form; types and number of sources
// are its own. Passes leave streaming stores unfenced.
#pragma once

#include <array>
#include <cstddef>

#include "base/combine.h"
#include "base/element.h"
#include "engine/device.h"

namespace onesum::engine::host {

// The passes from one element type to another, by number of sources; null where there is none.
inline constexpr std::size_t kMaxPassSources = 8;
struct Passes {
  std::array<Kernel, kMaxPassSources + 1> by_sources{};
  Kernel operator[](std::size_t sources) const noexcept {
    return sources <= kMaxPassSources ? by_sources[sources] : nullptr;
  }
};

// How deep a tree's stack may become.
inline constexpr std::size_t kMaxTreeDepth = 256;

// Whether merges[0, sources) begin with a canonical tree over `sources` that may be followed by more merges.
bool begins_with_canonical_tree(std::span<const std::uint8_t> merges, std::size_t sources) noexcept;
// How many of the last source's merges belong to the canonical tree itself.
constexpr std::uint8_t last_merges(std::size_t sources) noexcept {
  // The bits of n - 1 that are set: one merge for each smaller subtree waiting on the stack.
  return static_cast<std::uint8_t>(__builtin_popcountll(sources - 1));
}

// Conversions between integers and from integers to floats, and sums of 128 bits: everything that is not
// worth SIMD code of its own. Null if there is none.
const Passes* find_integer_passes(Element input, Element output) noexcept;

// The passes of what is no sum, from an element type to another: for the best instruction set of this
// machine. Null if there are none.
const Passes* find_operation_passes(Combine combine, Element input, Element output) noexcept;

// Products of complex numbers. Null for other types.
const Passes* find_complex_product_passes(Element element) noexcept;

// What the passes of a form combine by. One source is combined with nothing: a copy or a conversion.
inline Combine combine_in(const ReduceForm& form) noexcept {
  return form.merges.size() == 1 ? Combine::kSum : form.combine;
}

}  // namespace onesum::engine::host
