// What every engine refuses of a form, with the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <onesum/error.h>

#include "engine/device.h"

namespace onesum::engine {

[[noreturn]] inline void refuse_reduce(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// The merges must leave exactly one entry on the stack, without ever wanting two where there is one.
inline void check_tree(std::span<const std::uint8_t> merges, std::size_t max_depth) {
  if (merges.empty()) refuse_reduce("a reduce needs at least one source");
  std::size_t depth = 0;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    ++depth;
    if (depth > max_depth) {
      refuse_reduce("the order of additions needs more than " + std::to_string(max_depth) +
                    " partial sums at once");
    }
    if (merges[i] >= depth) {
      refuse_reduce("source " + std::to_string(i) + " asks for " + std::to_string(merges[i]) +
                    " additions with " + std::to_string(depth) + " partial sums there");
    }
    depth -= merges[i];
  }
  if (depth != 1) {
    refuse_reduce("the order of additions leaves " + std::to_string(depth) + " partial sums, not one");
  }
}

// Everything but the types. `max_depth`: how deep the stack of merges may become.
inline void check_reduce(const ReduceForm& form, std::size_t max_depth) {
  check_tree(form.merges, max_depth);
  if (form.destinations == 0) refuse_reduce("a reduce needs at least one destination");
  if (form.divisor < 1) {
    refuse_reduce("the divisor of a reduce is " + std::to_string(form.divisor) + ", not positive");
  }
  if (form.divisor != 1 && form.combine != Combine::kSum) {
    refuse_reduce("a " + std::string(to_string(form.combine)) + " is divided by " +
                  std::to_string(form.divisor) + "; only sums are");
  }
}

[[noreturn]] inline void refuse_types(const ReduceForm& form) {
  refuse_reduce("no " + std::string(to_string(form.combine)) + " of " + std::to_string(form.merges.size()) +
                " sources with divisor " + std::to_string(form.divisor) + " is defined for input " +
                std::string(to_string(form.input)) + ", accumulator " +
                std::string(to_string(form.accumulator)) + ", output " + std::string(to_string(form.output)));
}

}  // namespace onesum::engine
