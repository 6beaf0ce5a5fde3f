// What the bench reduces, and what must come out: an independent reduction in the canonical order.
//
// Inputs are small numbers that vary with element and replica. They repeat after a prime number of elements,
// in all replicas alike, so the result repeats too: it is computed once, and any amount of memory is filled
// and compared at the speed of memory. A phase (one per tensor) shifts the sequence, so that tensors differ.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onesum/dtype.h>
#include <onesum/options.h>

namespace onesum::cli {

// For reductions in another order than the canonical one the values are such that every order gives the same
// bits.
enum class Values { kAny, kWhole };

// How a result differs from what it should be.
struct Difference {
  std::size_t elements = 0;  // so many are, bit by bit, not what they should be
  std::string first;         // the first of them: "element 7 is 0x…, expected 0x…"
};

class Pattern {
 public:
  // Throws invalid_argument for types that the operation does not take.
  Pattern(ReduceOp op, DType dtype, std::size_t replicas, Values values = Values::kAny);

  void fill(std::span<std::byte> memory, std::size_t replica, std::size_t phase) const;

  Difference difference(std::span<const std::byte> result, std::size_t phase) const;
  // The same from what a replica was filled with; from the sum, where there is none.
  Difference difference_from(std::optional<std::size_t> replica, std::span<const std::byte> result,
                             std::size_t phase) const;

 private:
  static Difference difference(std::span<const std::byte> result, std::span<const std::byte> period,
                               std::size_t element_bytes, std::size_t phase);

  std::size_t input_bytes_;   // of one element
  std::size_t result_bytes_;  // of one element
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::byte> expected_;
};

}  // namespace onesum::cli
