// Plans written by hand, one worker per device unless said otherwise, for the tests of plan/*.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/builder.h"
#include "plan/plan.h"

namespace onesum::plan::sample {

struct Types {
  Element input = Element::kFloat32;
  Element accumulator = Element::kFloat32;
  Element output = Element::kFloat32;
  bool mean = false;
};

// SUM or MEAN of replicas of a type, with the library's accumulator and output types.
Types types_of(ReduceOp op, DType input);

// The pack of n replicas and n destinations on devices 0 to n-1.
Pack pack_of(std::int32_t n, const Types& types, Split split = {});

// All devices in one worker; one step sums everything and writes every result, in place or not.
Plan one_device(std::int32_t n, const Types& types, bool in_place);

// The same over a temporary on a device that holds neither a replica nor a result: a sum, then a finish.
Plan one_device_over_temp(std::int32_t n, const Types& types);

// Four devices in one worker, two lanes that each sum a pair, one of which (the first, or the second) waits
// for the other and finishes.
Plan two_lanes(const Types& types, bool first_finishes = true);

// Reduce-scatter and all-gather around a ring, one chunk at a time, with two channels per neighbour used in
// turn. Claims the order "ring".
Plan ring(std::int32_t n, const Types& types);

// Recursive halving, then doubling; n is a power of two. Canonical.
Plan halving_doubling(std::int32_t n, const Types& types, bool in_place = false);

// Owner r receives all raw chunks r, sums them in canonical order and sends the result to everyone.
Plan direct(std::int32_t n, const Types& types, bool in_place = false);

// The same in place with three lanes per worker: one sends raw chunks, one sums, one collects the results,
// which must not overwrite what is still to be sent.
Plan direct_in_lanes(std::int32_t n, const Types& types);

// Replica 0 travels from device to device, every device keeps a copy. In two segments.
Plan chain_broadcast(std::int32_t n, Element element);

// The two halves of an all-reduce as plans of their own, every worker's share two chunks: everyone sends the
// owner of a share its raw chunks, who sums them in canonical order; and shares travel around a ring.
Plan scatter(std::int32_t n, const Types& types);
Plan ring_all_gather(std::int32_t n, Element element);

// Every device gets the rows of all, around a ring; sizes are known at run time only.
Plan ring_gather(std::int32_t n, Element element);

// A user's function on one device, its result copied to all.
Plan user_function(std::int32_t n, const Types& types);

// One of each.
std::vector<Plan> all();

}  // namespace onesum::plan::sample
