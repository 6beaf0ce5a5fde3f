#include "cli/bench_kernels.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onesum::cli {
namespace {

#define ONESUM_INLINE inline __attribute__((always_inline))

// What bits are read and written as, one by one, or by the line or a quarter of it. A quarter is the widest
// that can be streamed on every x86-64 processor, and as fast as wider ones where memory decides.
struct Floats {
  using Element = float __attribute__((may_alias));
  using Line = float __attribute__((vector_size(64), may_alias));
  using Quarter = float __attribute__((vector_size(16), may_alias));
};
struct Integers {
  using Element = std::uint32_t __attribute__((may_alias));
  using Line = std::uint32_t __attribute__((vector_size(64), may_alias));
  using Quarter = std::uint32_t __attribute__((vector_size(16), may_alias));
};

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
  using Element = typename T::Element;
  Element* __restrict a = elements<Element>(args.destinations[0], args.begin);
  Element* __restrict b = elements<Element>(args.destinations[1], args.begin);
  const std::size_t n = (args.end - args.begin) / sizeof(Element);
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = a[i] + b[i];
}

template <class T>
ONESUM_INLINE void in_place_of_4(const SumArgs& args) {
  using Element = typename T::Element;
  Element* __restrict a = elements<Element>(args.destinations[0], args.begin);
  Element* __restrict b = elements<Element>(args.destinations[1], args.begin);
  Element* __restrict c = elements<Element>(args.destinations[2], args.begin);
  Element* __restrict d = elements<Element>(args.destinations[3], args.begin);
  const std::size_t n = (args.end - args.begin) / sizeof(Element);
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = c[i] = d[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

// Line by line: the sum in registers, then out to every destination. kCount 0: any number.
template <class T, std::size_t kCount>
ONESUM_INLINE void by_lines(const SumArgs& args) {
  using Line = typename T::Line;
  const std::size_t count = kCount != 0 ? kCount : args.count;
  for (std::size_t at = args.begin; at < args.end; at += sizeof(Line)) {
    Line sum = *elements<Line>(args.sources[0], at);
    for (std::size_t s = 1; s < count; ++s) sum += *elements<Line>(args.sources[s], at);
    for (std::size_t d = 0; d < count; ++d) *elements<Line>(args.destinations[d], at) = sum;
  }
}

// The same past the caches.
template <class T, std::size_t kCount>
ONESUM_INLINE void by_streamed_lines(const SumArgs& args) {
#if defined(__x86_64__)
  using Quarter = typename T::Quarter;
  constexpr std::size_t kQuarters = 4;
  const std::size_t count = kCount != 0 ? kCount : args.count;
  for (std::size_t at = args.begin; at < args.end; at += kQuarters * sizeof(Quarter)) {
    Quarter sum[kQuarters];
    for (std::size_t q = 0; q < kQuarters; ++q) sum[q] = elements<Quarter>(args.sources[0], at)[q];
    for (std::size_t s = 1; s < count; ++s) {
      for (std::size_t q = 0; q < kQuarters; ++q) sum[q] += elements<Quarter>(args.sources[s], at)[q];
    }
    for (std::size_t d = 0; d < count; ++d) {
      auto* to = elements<__m128i>(args.destinations[d], at);
      for (std::size_t q = 0; q < kQuarters; ++q) _mm_stream_si128(to + q, reinterpret_cast<__m128i>(sum[q]));
    }
  }
  _mm_sfence();
#else
  by_lines<T, kCount>(args);
#endif
}

#define ONESUM_FOR_COUNT(function, args) \
  switch ((args).count) {                \
    case 2:                              \
      return function<T, 2>(args);       \
    case 4:                              \
      return function<T, 4>(args);       \
    default:                             \
      return function<T, 0>(args);       \
  }

struct Kernels {
  SumKernel in_place_of_2;
  SumKernel in_place_of_4;
  SumKernel plain;
  SumKernel streaming;
};

// The same loops compiled for an instruction set.
#define ONESUM_KERNELS(name, attribute)                                                          \
  template <class T>                                                                             \
  struct name {                                                                                  \
    attribute static void of_2(const SumArgs& args) { in_place_of_2<T>(args); }                  \
    attribute static void of_4(const SumArgs& args) { in_place_of_4<T>(args); }                  \
    attribute static void plain(const SumArgs& args){ONESUM_FOR_COUNT(by_lines, args)} attribute \
        static void streaming(const SumArgs& args) {                                             \
      ONESUM_FOR_COUNT(by_streamed_lines, args)                                                  \
    }                                                                                            \
    static constexpr Kernels kAll{of_2, of_4, plain, streaming};                                 \
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
  const Kernels kernels = as_float ? best_kernels<Floats>() : best_kernels<Integers>();
  if (in_place && count == 2) return kernels.in_place_of_2;
  if (in_place && count == 4) return kernels.in_place_of_4;
  return stores == Stores::kStreaming ? kernels.streaming : kernels.plain;
}

}  // namespace onesum::cli
