// What a party brings to a level: its terms, with buffers for leaves.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collective/draft.h"
#include "collective/terms.h"

namespace onesum::collective {

// The terms of a party of this lane's rank. Where the level says so, the worker's ring, or its native sum, is
// written first.
std::vector<Term> open_party(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                             std::uint32_t shard);

// What comes after the last step of the party's lane.
void close_party(Draft& draft, std::int32_t lane, const Level& level, std::size_t party, std::uint32_t shard);

// The results that come to each rank from the level, by their number in the task.
std::map<std::int32_t, std::vector<std::int32_t>> results_by_rank(const Draft& draft, const Level& level);

}  // namespace onesum::collective
