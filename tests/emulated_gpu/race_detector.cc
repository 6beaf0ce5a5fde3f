#include "emulated_gpu/race_detector.h"

#include <utility>

namespace onesum::emulated {

std::optional<Access> History::conflict(const Range& range, bool is_written, const Clock& before) const {
  for (const Access& earlier : accesses_) {
    if ((is_written || earlier.is_written) && !earlier.operation->is_before(before) &&
        earlier.range.overlaps(range)) {
      return earlier;
    }
  }
  return std::nullopt;
}

std::optional<Access> History::add(const Access& access, const Clock& before, const Clock& known) {
  std::optional<Access> found;
  std::erase_if(accesses_, [&](const Access& earlier) {
    if (earlier.operation == access.operation) return false;
    if (earlier.operation->is_before(known)) return true;
    if (!earlier.operation->is_before(before)) {
      const bool conflicts = access.is_written || earlier.is_written;
      if (!found && conflicts && earlier.range.overlaps(access.range)) found = earlier;
      return false;
    }
    return (access.is_written || !earlier.is_written) && access.range.covers(earlier.range);
  });
  if (!access.range.is_empty()) accesses_.push_back(access);
  return found;
}

std::optional<Access> History::unfinished(const Clock& known) const {
  for (const Access& access : accesses_) {
    if (!access.operation->is_before(known)) return access;
  }
  return std::nullopt;
}

}  // namespace onesum::emulated
