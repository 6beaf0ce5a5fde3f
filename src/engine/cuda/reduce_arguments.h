// The arguments of one launch of a reduce kernel, passed by value: several pieces, all of one form.
//
// launch_arguments.h writes them, reduce_body.h reads them, on the GPU. The words hold first the steps, eight
// to a word, then the pieces: two words that say how a piece is divided among threads, and its pointers,
// destinations first, then sources in the order in which the steps take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/combine_kinds.h"

#if defined(__CUDACC__)
#define ONESUM_HOST_DEVICE __host__ __device__ __forceinline__
#define ONESUM_KEEP_LOOP _Pragma("unroll 1")  // of what is rarely more than one turn
#else
#define ONESUM_HOST_DEVICE inline
#define ONESUM_KEEP_LOOP
#endif

namespace onesum::engine::cuda {

// Threads take elements in groups of 16 bytes, or what is less of the wider of input and output.
inline constexpr std::size_t kGroupBytes = 16;
ONESUM_HOST_DEVICE constexpr std::size_t elements_of_group(std::size_t input_bytes,
                                                           std::size_t output_bytes) {
  return kGroupBytes / (input_bytes < output_bytes ? output_bytes : input_bytes);
}
// Addresses of a group's elements are aligned to as much as one instruction can move.
ONESUM_HOST_DEVICE constexpr std::size_t group_alignment(std::size_t elements, std::size_t element_bytes) {
  return elements * element_bytes < kGroupBytes ? elements * element_bytes : kGroupBytes;
}

// A step adds up one, two or four sources (as pairs of pairs), and then takes the sums of earlier steps to it
// `merges` times, the latest first.
struct ReduceStep {
  enum Kind : std::uint8_t { kOne, kOneWide, kTwo, kFour };  // wide: of the accumulator's type already

  Kind kind;
  std::uint8_t merges;

  static constexpr std::uint8_t kMaxMerges = 63;
  constexpr std::uint8_t code() const noexcept { return static_cast<std::uint8_t>(merges << 2 | kind); }
};

// The sums that wait while others are formed: in a good order, a tree over n sources has log2(n) of them.
inline constexpr std::size_t kMaxWaitingSums = 8;

struct ReduceArguments {
  std::int64_t divisor;
  std::uint32_t pieces;
  std::uint16_t destinations;
  std::uint16_t sources;
  std::uint16_t steps;
  Combine combine;  // for kernels of everything but sums

  static constexpr std::size_t kWords = 497;
  std::uint64_t words[kWords];  // of the 4 KiB that arguments may have in all, a little is left

  static constexpr std::uint64_t kBytewise = std::uint64_t{1} << 63;  // in a piece's second word

  ONESUM_HOST_DEVICE std::uint32_t step_words() const { return (steps + 7U) / 8U; }
  ONESUM_HOST_DEVICE std::uint32_t piece_words() const { return 2U + destinations + sources; }

  ONESUM_HOST_DEVICE ReduceStep step(std::uint32_t index) const {
    const auto code = static_cast<std::uint32_t>(words[index / 8] >> index % 8 * 8) & 0xFF;
    return {static_cast<ReduceStep::Kind>(code & 3), static_cast<std::uint8_t>(code >> 2)};
  }

  // A piece begins at this word. Its elements before `head`, and those that no longer fill a group, are taken
  // one by one; bytewise where an address is not even aligned to its element.
  ONESUM_HOST_DEVICE std::uint32_t piece(std::uint32_t index) const {
    return step_words() + index * piece_words();
  }
  ONESUM_HOST_DEVICE std::uint64_t count(std::uint32_t piece) const { return words[piece]; }
  ONESUM_HOST_DEVICE std::uint64_t head(std::uint32_t piece) const { return words[piece + 1] & ~kBytewise; }
  ONESUM_HOST_DEVICE bool is_bytewise(std::uint32_t piece) const {
    return (words[piece + 1] & kBytewise) != 0;
  }
  // NOLINTBEGIN(performance-no-int-to-ptr): the words are both
  ONESUM_HOST_DEVICE std::byte* destination(std::uint32_t piece, std::uint32_t index) const {
    return reinterpret_cast<std::byte*>(words[piece + 2 + index]);
  }
  ONESUM_HOST_DEVICE const std::byte* source(std::uint32_t piece, std::uint32_t index) const {
    return reinterpret_cast<const std::byte*>(words[piece + 2 + destinations + index]);
  }
  // NOLINTEND(performance-no-int-to-ptr)
};
static_assert(std::is_trivially_copyable_v<ReduceArguments> && sizeof(ReduceArguments) <= 4000);

}  // namespace onesum::engine::cuda
