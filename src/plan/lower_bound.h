// What no plan can beat: the least time for a sum over all replicas (Contract::kReduce) in the model of
// plan/timeline.h.
//
// S is the set of ranks with replicas, D that of ranks with results, R all ranks of the plan, B the bytes of
// one vector, in the smallest of its element types.
//
//  - Links. If some rank of D needs a replica of another rank, it receives every element at least once, as a
//    rank of S sends it at least once: B bytes over one link. In all, take for an element the first rank f
//    that knows its sum. Every other rank of S has sent a message that was received by then, every other rank
//    of D still has to receive one: |S| + |D| - 2 messages, one more if no rank is in both. R outgoing links
//    carry them, so one carries 1/R of their bytes. For W ranks that have everything that is the textbook's
//    2 (W-1)/W B (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009).
//  - Latency. The last of those bytes arrives one latency after it left, between a step that sends and a step
//    that uses it. It is one and not log2 of the ranks: a rank hears from all others at once.
//  - Memory. A rank reads each of its replicas and writes each of its results at least once, and what it must
//    send and receive too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plan/cost_constants.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

struct LowerBound {
  double seconds = 0;
  std::string reason;  // what binds: "links: 2040 bytes from one rank", "latency", "memory: rank 0 moves ..."
};

// The split of the pack does not matter. Throws invalid_argument for other contracts.
LowerBound lower_bound(const Pack& pack, std::span<const std::int32_t> device_rank, Element input,
                       std::size_t elements, const CostConstants& constants = {});

// The same for all packs of a plan: those that are alike but for their splits count as one, of different ones
// the slowest. Nothing if a pack has another contract.
std::optional<LowerBound> lower_bound(const Plan& plan, const Sizes& sizes,
                                      const CostConstants& constants = {});

// The type in which a pack's replicas come.
Element input_of(const Plan& plan, std::size_t pack);

}  // namespace onesum::plan
