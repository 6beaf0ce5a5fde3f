#include "collective/folding.h"

#include <bit>

namespace onesum::collective {

std::vector<Group> groups_of(std::size_t parties) {
  std::vector<Group> groups;
  for (std::size_t first = 0; first < parties;) {
    const std::size_t size = std::bit_floor(parties - first);
    groups.push_back({first, size, static_cast<std::uint32_t>(std::countr_zero(size))});
    first += size;
  }
  return groups;
}

std::size_t group_with(const std::vector<Group>& groups, std::size_t party) {
  std::size_t number = 0;
  while (party >= groups[number].first + groups[number].size) ++number;
  return number;
}

const std::vector<Term>& Outlines::of(std::size_t first, std::size_t end) {
  const auto [entry, is_new] = known_.try_emplace({first, end});
  if (is_new) {
    std::vector<Term> terms;
    for (std::size_t party = first; party < end; ++party) {
      const std::vector<Term> own = outline(level_.parties[party].terms);
      terms.insert(terms.end(), own.begin(), own.end());
    }
    entry->second = combined(std::move(terms), level_.tree);
  }
  return entry->second;
}

}  // namespace onesum::collective
