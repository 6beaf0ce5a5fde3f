// Recursive doubling: partners exchange all that they have added up so far, each time with one twice as far
// away, until everyone has everything.
//
//   party   0        1        2        3
//   hop 0   └── all ─┘        └── all ─┘      0 and 1 have a + b, 2 and 3 have c + d
//   hop 1   └─────── all ─────┘               everyone has (a + b) + (c + d)
//                    └─────── all ────┘
//
// Any number of parties: those beyond the largest power of two do the same among themselves (and so on), send
// what they have to the others, who add it last, and get the results back.
//
// Messages: log2 N of a party, as many deep; nothing else has so few where N > 2. Bytes: as many tensors,
// which only small packs can afford. Extra memory: what arrives stays in its slot until the pass that
// finishes the sum. Order: canonical if the parties' terms are.
#pragma once

#include <cstdint>

#include "collective/draft.h"
#include "collective/terms.h"

namespace onesum::collective {

// Writes the shard's lanes, one for each party. The draft's cut has one unit.
void write_doubling(Draft& draft, const Level& level, std::uint32_t shard);

}  // namespace onesum::collective
