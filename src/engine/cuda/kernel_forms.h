// Which kernel a form needs, by its place in ONESUM_CUDA_FORMS and, behind them, ONESUM_CUDA_COMBINE_FORMS.
// Without CUDA: tests use it where there is none.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/element.h"
#include "engine/cuda/reduce_forms.h"
#include "engine/device.h"

namespace onesum::engine::cuda {

#define ONESUM_COUNT_FORM(input, accumulator, output) +1
inline constexpr std::size_t kNumKernels =
    0 ONESUM_CUDA_FORMS(ONESUM_COUNT_FORM) ONESUM_CUDA_COMBINE_FORMS(ONESUM_COUNT_FORM);
#undef ONESUM_COUNT_FORM

// A kernel, and what of a form's elements it takes for elements of its own.
struct KernelForm {
  std::size_t index = 0;    // in both lists
  std::string_view symbol;  // "onesum_reduce_float16_float32_float16"
  Element input = Element::kFloat32;
  Element accumulator = Element::kFloat32;
  Element output = Element::kFloat32;
  std::size_t parts = 1;            // of the form's element; of a complex number two, unless it is multiplied
  Combine combine = Combine::kSum;  // what its elements are combined by
};

bool is_copy(const ReduceForm& form) noexcept;

// Throws invalid_argument for a form that has no meaning, or more sources and destinations than a launch has
// room for; the message names what is wrong with it.
KernelForm find_kernel_form(const ReduceForm& form);

}  // namespace onesum::engine::cuda
