// Ring: every party passes partial sums to its successor until each holds one finished segment, then passes
// the finished segments on. A reduce-scatter and an all-gather, each of N-1 messages a party.
//
//   party      0        1        2                        (segments a, b, c; x' = sum so far)
//   tick 0     c ──►    a ──►    b ──►                    party k begins with segment k-1
//   tick 1     b' ──►   c' ──►   a' ──►                   adds its own part to what arrives
//   finished   a        b        c                        party k holds segment k
//   tick 2     a ──►    b ──►    c ──►                    and passes it on
//   tick 3     c ──►    a ──►    b ──►
//
// Bytes: each party sends 2(N-1)/N·B, the least there can be. Steps: 2(N-1) messages deep. Extra memory: two
// slots of a segment at each party. Order: segment m is added up from position m+1 round to position m, left
// to right, so that no two segments associate alike: not canonical but for two parties.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/draft.h"
#include "collective/script.h"
#include "collective/terms.h"

namespace onesum::collective {

// The parties in the order of the ring for each of `shards` shards: worker by worker, each worker's rotated
// further from shard to shard, so that parallel rings use different links between the workers.
std::vector<std::vector<std::size_t>> ring_orders(const Level& level, const Topology& topology,
                                                  std::uint32_t shards);

// The lane of the party at `position` of `order`; the draft's cut has a unit for each party. All arguments
// outlive the script.
Script ring_lane(Draft& draft, const Level& level, const std::vector<std::size_t>& order,
                 std::size_t position, std::uint32_t shard);

// Writes the shard's lanes, one for each party.
void write_ring(Draft& draft, const Level& level, const std::vector<std::size_t>& order, std::uint32_t shard);

}  // namespace onesum::collective
