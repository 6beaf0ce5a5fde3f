// Every form for which there is a GPU kernel, by element types: what the host's kernels add and convert.
//
// ONESUM_CUDA_FORMS(X) is X(input, accumulator, output) for each, with the names of base/element.h. Kernels
// (kernels.cu), the table in which they are found (kernel_forms.cc) and their twins on the host, for tests,
// are made from this list. Complex numbers are two reals and copies are sums of one integer, so neither has
// kernels of its own. ONESUM_CUDA_COMBINE_FORMS is the same for what is no sum.
#pragma once

// Sums of narrow integers, which wrap, and which may be widened afterwards.
#define ONESUM_CUDA_FORMS_OF_UNSIGNED(X, type) X(type, type, type) X(type, type, uint64) X(type, type, int64)
#define ONESUM_CUDA_FORMS_OF_SIGNED(X, type) X(type, type, type) X(type, type, int64)

// What a sum in 64 or 128 bits can become.
#define ONESUM_CUDA_FORMS_IN_UINT64(X, input) \
  X(input, uint64, uint64)                    \
  X(input, uint64, int128)                    \
  X(input, uint64, uint128)                   \
  X(input, uint64, float32)                   \
  X(input, uint64, float64)
#define ONESUM_CUDA_FORMS_IN_INT64(X, input) \
  X(input, int64, int64)                     \
  X(input, int64, int128)                    \
  X(input, int64, float32)                   \
  X(input, int64, float64)
#define ONESUM_CUDA_FORMS_IN_INT128(X, input) \
  X(input, int128, int128)                    \
  X(input, int128, float32)                   \
  X(input, int128, float64)
#define ONESUM_CUDA_FORMS_IN_UINT128(X, input) \
  X(input, uint128, uint128)                   \
  X(input, uint128, float32)                   \
  X(input, uint128, float64)

#define ONESUM_CUDA_FORMS_IN_FLOAT32(X, input) \
  X(input, float32, float16)                   \
  X(input, float32, bfloat16)                  \
  X(input, float32, float32)

#define ONESUM_CUDA_FORMS(X)                \
  ONESUM_CUDA_FORMS_OF_UNSIGNED(X, uint8)   \
  ONESUM_CUDA_FORMS_OF_SIGNED(X, int8)      \
  ONESUM_CUDA_FORMS_OF_UNSIGNED(X, uint16)  \
  ONESUM_CUDA_FORMS_OF_SIGNED(X, int16)     \
  ONESUM_CUDA_FORMS_OF_UNSIGNED(X, uint32)  \
  ONESUM_CUDA_FORMS_OF_SIGNED(X, int32)     \
  ONESUM_CUDA_FORMS_IN_UINT64(X, uint8)     \
  ONESUM_CUDA_FORMS_IN_UINT64(X, uint16)    \
  ONESUM_CUDA_FORMS_IN_UINT64(X, uint32)    \
  ONESUM_CUDA_FORMS_IN_UINT64(X, uint64)    \
  ONESUM_CUDA_FORMS_IN_INT64(X, uint8)      \
  ONESUM_CUDA_FORMS_IN_INT64(X, int8)       \
  ONESUM_CUDA_FORMS_IN_INT64(X, uint16)     \
  ONESUM_CUDA_FORMS_IN_INT64(X, int16)      \
  ONESUM_CUDA_FORMS_IN_INT64(X, uint32)     \
  ONESUM_CUDA_FORMS_IN_INT64(X, int32)      \
  ONESUM_CUDA_FORMS_IN_INT64(X, int64)      \
  ONESUM_CUDA_FORMS_IN_INT128(X, uint64)    \
  ONESUM_CUDA_FORMS_IN_INT128(X, int64)     \
  ONESUM_CUDA_FORMS_IN_INT128(X, int128)    \
  ONESUM_CUDA_FORMS_IN_UINT128(X, uint64)   \
  ONESUM_CUDA_FORMS_IN_UINT128(X, uint128)  \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, float16)  \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, bfloat16) \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, float32)  \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, uint64)   \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, int64)    \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, uint128)  \
  ONESUM_CUDA_FORMS_IN_FLOAT32(X, int128)   \
  X(float64, float64, float64)              \
  X(uint64, float64, float64)               \
  X(int64, float64, float64)                \
  X(uint128, float64, float64)              \
  X(int128, float64, float64)

// The kernels of everything but sums: which operation it is they are told at the launch. Bits are combined as
// unsigned integers, whose products wrap as those of signed ones do.
#define ONESUM_CUDA_COMBINE_FORMS(X) \
  X(uint8, uint8, uint8)             \
  X(int8, int8, int8)                \
  X(uint16, uint16, uint16)          \
  X(int16, int16, int16)             \
  X(uint32, uint32, uint32)          \
  X(int32, int32, int32)             \
  X(uint64, uint64, uint64)          \
  X(int64, int64, int64)             \
  X(float16, float32, float16)       \
  X(float16, float32, bfloat16)      \
  X(float16, float32, float32)       \
  X(bfloat16, float32, float16)      \
  X(bfloat16, float32, bfloat16)     \
  X(bfloat16, float32, float32)      \
  X(float32, float32, float16)       \
  X(float32, float32, bfloat16)      \
  X(float32, float32, float32)       \
  X(float64, float64, float64)       \
  X(complex64, complex64, complex64) \
  X(complex128, complex128, complex128)

#define ONESUM_CUDA_KERNEL(input, accumulator, output) onesum_reduce_##input##_##accumulator##_##output
#define ONESUM_CUDA_COMBINE_KERNEL(input, accumulator, output) \
  onesum_combine_##input##_##accumulator##_##output
