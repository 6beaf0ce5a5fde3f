#include "engine/host/reduce_kernels.h"

#include <algorithm>
#include <string>

#include <onesum/error.h>

#include "engine/host/passes.h"
#include "engine/host/simd_kernels.h"

namespace onesum::engine::host {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

std::string types_of(const ReduceForm& form) {
  return "input " + std::string(to_string(form.input)) + ", accumulator " +
         std::string(to_string(form.accumulator)) + ", output " + std::string(to_string(form.output));
}

// The merges must leave exactly one entry on the stack, without ever wanting two where there is one.
void validate_tree(std::span<const std::uint8_t> merges) {
  if (merges.empty()) refuse("a reduce needs at least one source");
  std::size_t depth = 0;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    ++depth;
    if (depth > kMaxTreeDepth) {
      refuse("the order of additions needs more than " + std::to_string(kMaxTreeDepth) +
             " partial sums at once");
    }
    if (merges[i] >= depth) {
      refuse("source " + std::to_string(i) + " asks for " + std::to_string(merges[i]) + " additions with " +
             std::to_string(depth) + " partial sums there");
    }
    depth -= merges[i];
  }
  if (depth != 1) refuse("the order of additions leaves " + std::to_string(depth) + " partial sums, not one");
}

}  // namespace

Kernel find_reduce_kernel(const ReduceForm& form) {
  validate_tree(form.merges);
  if (form.destinations == 0) refuse("a reduce needs at least one destination");
  if (form.divisor < 1)
    refuse("the divisor of a reduce is " + std::to_string(form.divisor) + ", not positive");
  const Kernel kernel = find_simd_kernel(form);
  if (kernel == nullptr) {
    refuse("no sum of " + std::to_string(form.merges.size()) + " sources with divisor " +
           std::to_string(form.divisor) + " is defined for " + types_of(form));
  }
  return kernel;
}

}  // namespace onesum::engine::host
