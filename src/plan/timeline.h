// When the steps of a plan would happen: a simulation by events, for plans too large to be stored.
//
// Each lane is a stream of steps, made a stretch at a time, so that a plan of a hundred million steps costs
// memory for its lanes and channels only. What takes time:
//  - A rank does one copy, reduce or call at a time, in the order in which they could begin; it takes `step`
//    seconds and gamma per byte that it reads and writes.
//  - Such a step begins when the slots it writes to are free and sends when it is done. A message between
//    ranks occupies its sender's outgoing link, and `latency` later its receiver's incoming link, for
//    seconds_per_byte per byte each; links take messages in the order in which they are sent, each rank has
//    one of either. Between devices of one rank a message just takes its time.
//  - counts are known when the last rank has come to them, and ceil(log2 ranks) latencies across have passed.
//  - A native collective begins when the last rank of its group has come to it. It takes as long as the best
//    that is known would over the group's slowest links: to all-reduce B bytes over n devices 2 ceil(log2 n)
//    latencies and 2 (n - 1) / n B bytes, to reduce or broadcast them ceil(log2 n) and B, and `gamma` for
//    what the devices of a rank read and write. It keeps neither its ranks nor their links from other work.
// Everything else takes none. Equal inputs give equal results, bit by bit.
#pragma once

#include <cstdint>
#include <span>

#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

// The next steps of a lane. Their operands, buffers, channels, packs and devices are those of `part`; all of
// it is valid until the next call of next(), of whatever lane.
struct Stretch {
  const Plan* part = nullptr;
  std::span<const Step> steps;
};

class LaneStream {
 public:
  virtual ~LaneStream() = default;

  // Fills in the next stretch; false: the lane ends.
  virtual bool next(Stretch& stretch) = 0;
};

struct TimelineLane {
  std::int32_t rank = 0;
  LaneStream* stream = nullptr;  // borrowed
  std::int32_t first_lane = 0;   // which lane here is lane 0 to its waits
  bool is_awaited = false;       // some wait names it; then the times of its steps are kept, 16 bytes a step
};

// How ranks come to their links.
enum class Links : std::uint8_t {
  kShared,  // ranks may have several lanes, and others may send to the same ranks
  kOwn,     // every rank has one lane and hears from one other rank, as around a ring. Nobody ever waits for
            // its turn, so that a lane can be followed as far as its messages go, whatever time it is.
};

// Parts agree on packs and devices and their numbers; buffers and channels are each part's own, channels with
// the same ends and number are the same. Lanes must be well formed (plan/well_formed.h). Throws
// invalid_argument if a lane does not get to its end, naming the lane, the step and what it waits for.
// `links` makes it faster; the result is the same. Throws invalid_argument if it is kOwn and they are not.
Cost timeline(std::span<const TimelineLane> lanes, const Sizes& sizes, const CostConstants& constants = {},
              Links links = Links::kShared);

}  // namespace onesum::plan
