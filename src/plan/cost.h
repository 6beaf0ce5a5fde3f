// What a plan would cost for given sizes: steps, bytes and a predicted time. Nothing is run.
//
// The time is that of plan/timeline.h: a rank does one step at a time; a step takes `step` plus gamma per
// byte that it reads and writes, a message arrives latency plus seconds_per_byte per byte after the step that
// sent it, or after the messages before it on the same link. Messages are not cut into segments here, so for
// large sizes the time is an upper bound of what a pipelined executor needs; it is meant for comparing plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/cost_constants.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

struct DeviceCost {
  std::uint64_t bytes_read = 0;      // by steps on this device, wherever the bytes are
  std::uint64_t bytes_written = 0;   // the same; messages included
  std::uint64_t bytes_sent = 0;      // in messages from this device
  std::uint64_t bytes_received = 0;  // in messages to this device
  std::uint64_t additions = 0;       // of elements
};

// What goes over one level of links.
struct LinkCost {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

// What native collectives move by themselves, which are no messages.
struct NativeCost {
  std::uint64_t steps = 0;  // one for each rank that takes part
  std::uint64_t bytes = 0;  // at least, between devices
};

struct Cost {
  std::size_t steps = 0;  // that move or compute: copies, reductions, calls, native collectives
  std::size_t messages = 0;
  std::size_t longest_chain = 0;  // steps of which each must wait for the one before it
  LinkCost inside;                // messages between devices of one rank
  LinkCost across;                // messages between ranks
  NativeCost native;
  std::vector<DeviceCost> devices;
  DeviceCost total;
  double seconds = 0;  // predicted, from the first step to the last
};

// For a plan that gets to its end (plan/verify.h); throws invalid_argument if it does not.
Cost cost(const Plan& plan, const Sizes& sizes, const CostConstants& constants = {});

}  // namespace onesum::plan
