// From a caller's values to a planner's request. Cold: it runs when a call of a kind is made for the first
// time.
#pragma once

#include <string>

#include "api/pairs.h"
#include "planner/request.h"

namespace onesum::api {

struct CallTraits {
  planner::CallKind kind = planner::CallKind::kBatchReduce;
  ReduceOp op = ReduceOp::kSum;
  int axis = 0;
  bool into = false;
  int root = 0;  // planner::has_root
  bool has_equal_parts = false;
  int receiver = -1;  // the only worker that gets results
};

// Checks each component by itself (that it refers to memory, that slices are well formed) and describes it.
// `defaults` complete partial devices.
planner::Request describe(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
                          const Device& defaults);

// The replica of `value` that result number `destination` replaces: the same memory, type and shape on the
// same device; -1: none. Cheap, and most so where results come in the order of the replicas.
int in_place_replica(const DistributedValues& value, const Value& result, std::size_t destination,
                     const Device& defaults);

}  // namespace onesum::api
