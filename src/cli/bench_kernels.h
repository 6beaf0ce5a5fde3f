// The sums that the bench compares the library with, written by hand: every input read once, every output
// written once, nothing else done. They know nothing of tensors, plans or types beyond the width of an
// element.
#pragma once

#include <cstddef>

namespace onesum::cli {

// In lines of 64 bytes; all memory is aligned to them. Destinations may be the sources themselves.
struct SumArgs {
  const std::byte* const* sources = nullptr;
  std::byte* const* destinations = nullptr;
  std::size_t count = 0;  // of sources, and of destinations
  std::size_t begin = 0;  // bytes
  std::size_t end = 0;
};
using SumKernel = void (*)(const SumArgs&);

enum class Stores {
  kPlain,
  kStreaming,  // bypass the caches
};

// Every destination = the sum of all sources, compiled for the best instruction set of this processor.
// Elements are float32 if `as_float`, else 32-bit integers: the same traffic for data of any type, whose bits
// they are, without the slow paths that floats have for some bits.
SumKernel sum_kernel(std::size_t count, bool in_place, bool as_float, Stores stores);

}  // namespace onesum::cli
