#include "engine/host/reduce_kernels.h"

#include "engine/host/passes.h"
#include "engine/host/simd_kernels.h"
#include "engine/reduce_checks.h"

namespace onesum::engine::host {

Kernel find_reduce_kernel(const ReduceForm& form) {
  check_reduce(form, kMaxTreeDepth);
  const Kernel kernel = find_simd_kernel(form);
  if (kernel == nullptr) refuse_types(form);
  return kernel;
}

}  // namespace onesum::engine::host
