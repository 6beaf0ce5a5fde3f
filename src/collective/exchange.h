// Exchange: everyone sends its terms to every other worker, and everyone adds up all of them for itself.
//
//   worker 0   a ──┬──────► worker 1     1. terms travel to all other workers
//   worker 1   b ──┼──────► worker 0
//                  ▼
//   both       a + b                     2. one pass adds them into the worker's results
//
// Steps: one message deep, which nothing else is. Bytes: a worker sends its terms to every other one, which
// only small packs can afford. Order: canonical if the parties' terms are.
#pragma once

#include <cstdint>

#include "collective/draft.h"
#include "collective/terms.h"

namespace onesum::collective {

// Writes the shard's lanes, one for each rank. The draft's cut has one unit.
void write_exchange(Draft& draft, const Level& level, std::uint32_t shard);

}  // namespace onesum::collective
