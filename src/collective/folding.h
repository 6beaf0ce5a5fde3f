// Parties of any number in groups of powers of two: the largest that there is, then the largest of those
// beyond it, and so on. Each group adds up by itself, and what those beyond it have is added last, as the
// canonical tree does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collective/terms.h"

namespace onesum::collective {

struct Group {
  std::size_t first = 0;
  std::size_t size = 0;
  std::uint32_t hops = 0;  // log2 of the size
};

std::vector<Group> groups_of(std::size_t parties);

// Of these, the number of the one that has the party.
std::size_t group_with(const std::vector<Group>& groups, std::size_t party);

// What is known of sums over neighbouring parties of a level, which outlives it.
class Outlines {
 public:
  explicit Outlines(const Level& level) : level_(level) {}

  // Over parties [first, end).
  const std::vector<Term>& of(std::size_t first, std::size_t end);

 private:
  const Level& level_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Term>> known_;
};

}  // namespace onesum::collective
