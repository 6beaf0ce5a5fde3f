#include "engine/cuda/launch.h"

#include <algorithm>
#include <array>

#include "engine/cuda/kernel_forms.h"
#include "engine/cuda/reduce_forms.h"

// The kernels as nvcc shows them to the host.
#define ONESUM_DECLARE_KERNEL(input, accumulator, output) \
  extern "C" void ONESUM_CUDA_KERNEL(input, accumulator, output)(onesum::engine::cuda::ReduceArguments);
ONESUM_CUDA_FORMS(ONESUM_DECLARE_KERNEL)
#define ONESUM_DECLARE_COMBINE_KERNEL(input, accumulator, output) \
  extern "C" void ONESUM_CUDA_COMBINE_KERNEL(input, accumulator,  \
                                             output)(onesum::engine::cuda::ReduceArguments);
ONESUM_CUDA_COMBINE_FORMS(ONESUM_DECLARE_COMBINE_KERNEL)

namespace onesum::engine::cuda {
namespace {

constexpr unsigned kThreadsOfBlock = 256;
constexpr unsigned kBlocksOfMultiprocessor = 8;  // 2048 threads, as many as any has

using KernelStub = void (*)(ReduceArguments);
#define ONESUM_KERNEL_STUB(input, accumulator, output) &ONESUM_CUDA_KERNEL(input, accumulator, output),
#define ONESUM_COMBINE_KERNEL_STUB(input, accumulator, output) \
  &ONESUM_CUDA_COMBINE_KERNEL(input, accumulator, output),
constexpr std::array<KernelStub, kNumKernels> kStubs = {
    ONESUM_CUDA_FORMS(ONESUM_KERNEL_STUB) ONESUM_CUDA_COMBINE_FORMS(ONESUM_COMBINE_KERNEL_STUB)};

}  // namespace

const void* find_kernel(const ReduceForm& form) {
  return reinterpret_cast<const void*>(kStubs[find_kernel_form(form).index]);
}

cudaError_t launch_reduce(const void* kernel, const ReduceForm& form, std::span<const std::uint8_t> is_wide,
                          std::span<const LaunchPiece> pieces, const LaunchTarget& target) {
  const LaunchWriter writer(form, is_wide);
  ReduceArguments arguments;
  void* parameters[] = {&arguments};
  while (!pieces.empty()) {
    pieces = pieces.subspan(writer.write(pieces, arguments));
    const std::uint64_t items = writer.items(arguments);
    if (items == 0) continue;
    const std::uint64_t blocks = std::min<std::uint64_t>((items + kThreadsOfBlock - 1) / kThreadsOfBlock,
                                                         target.multiprocessors * kBlocksOfMultiprocessor);
    const cudaError_t error = cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                               dim3(kThreadsOfBlock), parameters, 0, target.stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace onesum::engine::cuda
