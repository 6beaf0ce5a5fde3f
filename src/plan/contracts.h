// Which buffers stand for the replicas and the results of packs, and which chunks of them, by the packs'
// contracts.
//
// Used by what judges or executes whole plans (rules, symbolic, results, simulate). For well-formed plans.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

// By pack, then by replica or by destination: the number of its buffer.
using BuffersOfPacks = std::vector<std::vector<std::int32_t>>;

// The kInput or kInOut of each replica; -1 where a replica has none, because nobody reads it. Throws
// invalid_argument if it has two.
BuffersOfPacks replica_buffers(const Plan& plan);

// The buffer of each destination. Throws invalid_argument unless each has exactly one: its kOutput, or the
// kInOut on its device.
BuffersOfPacks result_buffers(const Plan& plan);

// The chunks that a replica's buffer holds at the beginning: its window, or of a concatenation by counts its
// own chunk.
Chunks brought_by(const Plan& plan, const Buffer& replica);

// Of each chunk of a Contract::kConcatenate, the replica that brings it. Throws invalid_argument unless that
// is exactly one of each.
std::vector<std::int32_t> bringers(const Plan& plan, const BuffersOfPacks& replicas, std::int32_t pack);

// Of each chunk of a Contract::kScatter, the destination that holds it. Throws invalid_argument unless that
// is exactly one of each.
std::vector<std::int32_t> holders(const Plan& plan, const BuffersOfPacks& results, std::int32_t pack);

}  // namespace onesum::plan
