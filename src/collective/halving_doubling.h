// Recursive halving, then doubling: partners exchange halves of what they still hold until each holds one
// finished piece, and the same way back. A reduce-scatter and an all-gather, each of log2 N messages a party.
//
//   party     0        1        2        3
//   hop 0     └─ halves ─┘      └─ halves ─┘       party 0 keeps the first half, party 1 the second
//   hop 1     └──── quarters ───┘                  0 and 2 halve the first half, 1 and 3 the second
//                      └──── quarters ───┘
//   finished  piece 0  piece 2  piece 1  piece 3
//   hop 1, hop 0 again, with finished pieces that double
//
// Any number of parties: those beyond the largest power of two do the same among themselves (and so on), and
// their finished pieces are added last, by the owners, who then return the results.
//
// Nothing is added up before it must travel: what arrives stays in its slot until the pass that sends it on,
// or finishes it, reads it together with everything else. Bytes: each party sends 2(N-1)/N·B (more where the
// canonical order needs several terms). Extra memory: the slots of what arrived, less than B. Order:
// canonical.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/draft.h"
#include "collective/folding.h"
#include "collective/script.h"
#include "collective/terms.h"

namespace onesum::collective {

// Who exchanges what with whom. Shared by the lanes of all parties.
class HalvingDoubling {
 public:
  explicit HalvingDoubling(const Level& level);

  std::uint32_t units() const noexcept { return units_; }  // pieces: the largest power of two of parties

  // The pieces that a party ends up with, or begins an all-gather with: units [first, first + count). None,
  // for those beyond the largest power of two.
  plan::Chunks owned_by(std::size_t party) const;

  // The lane of a party. The draft's cut has units() units; this object and the draft outlive the script.
  Script lane(Draft& draft, std::size_t party, std::uint32_t shard);

  // Writes the shard's lanes, one for each party.
  void write(Draft& draft, std::uint32_t shard);

 private:
  friend class HalvingDoublingLane;

  const Level& level_;
  std::vector<Group> groups_;  // which halve among themselves
  std::uint32_t units_ = 1;
  Outlines outlines_;
};

}  // namespace onesum::collective
