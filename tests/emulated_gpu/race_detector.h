// Finds accesses to the same memory that nothing orders, when the later one is enqueued: whether they meet in
// time does not matter.
//
// One History for each allocation; the world's lock guards it. An access is forgotten when no later operation
// can be unordered with it, or when another one is left that every such operation would also conflict with.
#pragma once

#include <optional>
#include <vector>

#include "emulated_gpu/clock.h"
#include "emulated_gpu/operation.h"

namespace onesum::emulated {

class History {
 public:
  // An earlier access that conflicts with `access`, whose operation comes after `before`, and is not in
  // `before`. What is in `known` is before every later operation.
  std::optional<Access> add(const Access& access, const Clock& before, const Clock& known);

  // The same for an access of the host itself, which is over when the call returns.
  std::optional<Access> conflict(const Range& range, bool is_written, const Clock& before) const;

  // An access of which `known` does not tell that it is over.
  std::optional<Access> unfinished(const Clock& known) const;

 private:
  std::vector<Access> accesses_;
};

}  // namespace onesum::emulated
