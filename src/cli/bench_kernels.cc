#include "cli/bench_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onesum::cli {
namespace {

constexpr std::size_t kBlock = 4096;  // bytes: a block of the sum stays in the first-level cache

#define ONESUM_INLINE inline __attribute__((always_inline))

// Bits of any type are read and written as these.
using Float = float __attribute__((may_alias));
using Integer = std::uint32_t __attribute__((may_alias));

template <class T>
ONESUM_INLINE T* elements(std::byte* memory, std::size_t begin) {
  return static_cast<T*>(static_cast<void*>(memory + begin));
}
template <class T>
ONESUM_INLINE const T* elements(const std::byte* memory, std::size_t begin) {
  return static_cast<const T*>(static_cast<const void*>(memory + begin));
}

template <class T>
ONESUM_INLINE void in_place_of_2(const SumArgs& args) {
  T* __restrict a = elements<T>(args.destinations[0], args.begin);
  T* __restrict b = elements<T>(args.destinations[1], args.begin);
  const std::size_t n = (args.end - args.begin) / sizeof(T);
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = a[i] + b[i];
}

template <class T>
ONESUM_INLINE void in_place_of_4(const SumArgs& args) {
  T* __restrict a = elements<T>(args.destinations[0], args.begin);
  T* __restrict b = elements<T>(args.destinations[1], args.begin);
  T* __restrict c = elements<T>(args.destinations[2], args.begin);
  T* __restrict d = elements<T>(args.destinations[3], args.begin);
  const std::size_t n = (args.end - args.begin) / sizeof(T);
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = c[i] = d[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

template <class T>
ONESUM_INLINE void add_into(T* __restrict sum, const T* __restrict a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += a[i];
}

template <class T>
ONESUM_INLINE void add_two(T* __restrict sum, const T* __restrict a, const T* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

ONESUM_INLINE void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  auto* lines = static_cast<__m128i*>(static_cast<void*>(to));
  const auto* source = static_cast<const __m128i*>(static_cast<const void*>(from));
  for (std::size_t i = 0; i < bytes / sizeof(__m128i); ++i) _mm_stream_si128(lines + i, _mm_load_si128(source + i));
#else
  std::memcpy(to, from, bytes);
#endif
}

// Block by block: the sum in the cache, source by source, then out to every destination.
template <class T, Stores kStores>
ONESUM_INLINE void in_blocks(const SumArgs& args) {
  alignas(64) std::byte block[kBlock];
  for (std::size_t at = args.begin; at < args.end; at += kBlock) {
    const std::size_t bytes = std::min(kBlock, args.end - at);
    const std::size_t n = bytes / sizeof(T);
    T* sum = elements<T>(block, 0);
    if (args.count == 1) {
      std::memcpy(block, args.sources[0] + at, bytes);
    } else {
      add_two<T>(sum, elements<T>(args.sources[0], at), elements<T>(args.sources[1], at), n);
    }
    for (std::size_t s = 2; s < args.count; ++s) add_into<T>(sum, elements<T>(args.sources[s], at), n);
    for (std::size_t d = 0; d < args.count; ++d) {
      if constexpr (kStores == Stores::kStreaming) {
        stream(args.destinations[d] + at, block, bytes);
      } else {
        std::memcpy(args.destinations[d] + at, block, bytes);
      }
    }
  }
#if defined(__x86_64__)
  if constexpr (kStores == Stores::kStreaming) _mm_sfence();
#endif
}

struct Kernels {
  SumKernel in_place_of_2;
  SumKernel in_place_of_4;
  SumKernel plain;
  SumKernel streaming;
};

// The same loops compiled for an instruction set.
#define ONESUM_KERNELS(name, attribute)                                                            \
  template <class T>                                                                               \
  struct name {                                                                                    \
    attribute static void of_2(const SumArgs& args) { in_place_of_2<T>(args); }                    \
    attribute static void of_4(const SumArgs& args) { in_place_of_4<T>(args); }                    \
    attribute static void plain(const SumArgs& args) { in_blocks<T, Stores::kPlain>(args); }       \
    attribute static void streaming(const SumArgs& args) { in_blocks<T, Stores::kStreaming>(args); } \
    static constexpr Kernels kAll{of_2, of_4, plain, streaming};                                   \
  }

ONESUM_KERNELS(Portable, );
#if defined(__x86_64__)
ONESUM_KERNELS(Avx2, __attribute__((target("avx2"))));
ONESUM_KERNELS(Avx512, __attribute__((target("avx512f"))));
#endif

template <class T>
Kernels best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Avx512<T>::kAll;
  if (__builtin_cpu_supports("avx2")) return Avx2<T>::kAll;
#endif
  return Portable<T>::kAll;
}

}  // namespace

SumKernel sum_kernel(std::size_t count, bool in_place, bool as_float, Stores stores) {
  const Kernels kernels = as_float ? best_kernels<Float>() : best_kernels<Integer>();
  if (in_place && count == 2) return kernels.in_place_of_2;
  if (in_place && count == 4) return kernels.in_place_of_4;
  return stores == Stores::kStreaming ? kernels.streaming : kernels.plain;
}

}  // namespace onesum::cli
