// What a plan would cost for given sizes: steps, bytes and a predicted time. Nothing is run.
//
// The time follows from list scheduling with four constants: a rank does one step at a time, of those that
// can begin the one that can begin first; a step takes `step` plus gamma per byte that it reads and writes, a
// message arrives alpha plus beta per byte after the step that sent it. Messages are not cut into segments
// here, so for large sizes the time is an upper bound of what a pipelined executor needs; it is meant for
// comparing plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

struct CostConstants {
  double alpha = 2e-6;    // seconds per message: publishing it and being noticed by a waiting thread
  double beta = 1e-10;    // seconds per byte of a message: 10 GB/s
  double gamma = 1e-10;   // seconds per byte of memory traffic: 10 GB/s read and written
  std::size_t slots = 2;  // of each channel
  double step = 1e-7;     // seconds per step: a call of nothing but one takes about that long
};

struct DeviceCost {
  std::uint64_t bytes_read = 0;     // by steps on this device, wherever the bytes are
  std::uint64_t bytes_written = 0;  // the same; messages included
  std::uint64_t bytes_sent = 0;     // in messages from this device
  std::uint64_t additions = 0;      // of elements
};

struct Cost {
  std::size_t steps = 0;  // that move or compute: copies, reductions, calls
  std::size_t messages = 0;
  std::size_t longest_chain = 0;  // steps of which each must wait for the one before it
  std::vector<DeviceCost> devices;
  DeviceCost total;
  double seconds = 0;  // predicted, from the first step to the last
};

// For a plan that gets to its end (plan/verify.h); throws invalid_argument if it does not.
Cost cost(const Plan& plan, const Sizes& sizes, const CostConstants& constants = {});

}  // namespace onesum::plan
