// The GPU's kernels: one for each form. How they are compiled (cmake/OnesumCuda.cmake) matters: no
// multiplication is contracted into an addition, division is IEEE's, subnormals are kept.
#include "engine/cuda/reduce_body.h"
#include "engine/cuda/reduce_forms.h"

namespace cuda = onesum::engine::cuda;
namespace element_types = cuda::element_types;

#define ONESUM_DEFINE_NAMED(name, is_sum, input, accumulator, output)                                   \
  extern "C" __global__ void name(const __grid_constant__ cuda::ReduceArguments arguments) {            \
    cuda::reduce_body<element_types::input, element_types::accumulator, element_types::output, is_sum>( \
        arguments, std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,                                \
        std::uint64_t{gridDim.x} * blockDim.x);                                                         \
  }
#define ONESUM_DEFINE_KERNEL(input, accumulator, output) \
  ONESUM_DEFINE_NAMED(ONESUM_CUDA_KERNEL(input, accumulator, output), true, input, accumulator, output)
ONESUM_CUDA_FORMS(ONESUM_DEFINE_KERNEL)
#define ONESUM_DEFINE_COMBINE_KERNEL(input, accumulator, output)                                         \
  ONESUM_DEFINE_NAMED(ONESUM_CUDA_COMBINE_KERNEL(input, accumulator, output), false, input, accumulator, \
                      output)
ONESUM_CUDA_COMBINE_FORMS(ONESUM_DEFINE_COMBINE_KERNEL)
