// Hierarchical copy: two halves are each summed at a root, the one root adds the other's sum, and the result
// goes back the same way. Which parties are roots rotates from pack to pack, so that many packs load all
// alike.
//
//   half A                half B
//   0    1 ──► [0]        2 ──► [3]             each half is summed at its root
//              [0] ◄───────────── [3]           the second root's sum joins the first's: the total
//   0 ◄─ 1 ◄── [0] ───────────► [3] ──► 2       the total goes to both halves
//
// The halves are the two branches of the canonical tree: the first p parties, p the largest power of two
// below N, and the rest; so the order is canonical. Steps: 4 messages deep at most. Bytes: B from every party
// to its root and back, and B each way between the roots. Extra memory: B at the second root.
#pragma once

#include <cstdint>

#include "collective/draft.h"
#include "collective/terms.h"

namespace onesum::collective {

// The parties that are roots for a pack.
struct Roots {
  std::size_t first = 0;   // has the total first
  std::size_t second = 0;  // of the other half; equal to `first` for a single party
};
Roots roots_of(std::size_t parties, std::size_t pack_number);

// Writes the shard's lanes, one for each rank; the draft's cut has one unit.
void write_hierarchical_copy(Draft& draft, const Level& level, std::size_t pack_number, std::uint32_t shard);

}  // namespace onesum::collective
