// The instruction sets that SIMD code is compiled for: to be included first, before hwy/foreach_target.h. All
// files that use it have kernels for the same ones, so that what is found in one fits what is found in
// another.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONESUM_FEW_TARGETS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ONESUM_FEW_TARGETS 1
#endif
#endif
#if defined(ONESUM_FEW_TARGETS)
// Sanitizers make these files several times slower to compile; the targets left out differ in constants and
// in a few lines only.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
// SSSE3 alone, and what Ice Lake adds to AVX-512, would make nothing here faster.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
// The fallback is one lane at a time for every compiler: emulated vectors take minutes to compile.
#define HWY_BROKEN_EMU128 1
