// The sizes that a plan leaves open, for those who execute or cost it without memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

struct Sizes {
  std::vector<std::size_t> pack_lengths;         // elements, one per pack; not used where counts are
  std::vector<std::vector<std::size_t>> counts;  // one list per pack, or no list at all; for
                                                 // SplitRule::kCounts: the elements that each replica brings
};

// Where a run of chunks lies in its pack, in elements.
inline Extent extent_of(const Plan& plan, const Sizes& sizes, std::int32_t pack, Chunks chunks) {
  const auto number = static_cast<std::size_t>(pack);
  const std::span<const std::size_t> counts = number < sizes.counts.size()
                                                  ? std::span<const std::size_t>(sizes.counts[number])
                                                  : std::span<const std::size_t>();
  const std::size_t length = number < sizes.pack_lengths.size() ? sizes.pack_lengths[number] : 0;
  return extent_of(plan.pack(pack).split, length, counts, chunks);
}

}  // namespace onesum::plan
