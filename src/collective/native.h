// Native: the library of the GPUs' vendor (NCCL) runs whole collectives, in steps that only it sees into.
//
// Alone, over all devices of all workers: one native step for each rank and shard; every rank's GPUs bring
// their replicas and get the sum. A MEAN is divided by a step of ours for each device.
//
//   rank 0   a0 a1 ──┐                 ┌── s s     s = Σ(a0, a1, b0, b1), in the library's order
//   rank 1   b0 b1 ──┴── all_reduce ───┴── s s
//
// As the lower level of a hierarchy, over the GPUs of each worker by themselves: a native reduce to the
// worker's first GPU, the upper level with one sum for each worker, and a native broadcast from there. The
// library pipelines by itself, so that both take the whole pack, whatever shards the upper level has. Both
// are in the rank's first lane, which waits for the others before the broadcast: plans that are put side by
// side then have all native steps of a rank in one lane, and so in one order.
//
// The library adds in the type of the replicas, 16-bit floats too, and in an order of its own: what it sums
// is opaque, and so is what contains it.
#pragma once

#include <cstdint>

#include "collective/draft.h"
#include "collective/task.h"
#include "collective/terms.h"

namespace onesum::collective {

// Whether the library can run an all-reduce: several replicas, each on a GPU of its own, with a result on
// each of these, of a type that it adds. A MEAN of integers it cannot: their sum would wrap.
bool can_run_natively(const Topology& topology, const Task& task);

// Of a level whose parties are workers: those with several replicas bring their native sum instead, and know
// of one result only.
void sum_natively(Level& level, const Task& task);
bool has_native_sums(const Level& level);

// Alone: writes a lane for each rank, with a native step for each shard.
void write_native(Draft& draft, std::uint32_t shards);

// Of a party that is summed natively: what comes before the first step of its lane of a shard, and returns
// the term that it brings; and what comes after the last one.
Term open_native(Draft& draft, std::int32_t lane, const Level& level, std::size_t party, std::uint32_t shard);
void close_native(Draft& draft, std::int32_t lane, const Level& level, std::size_t party,
                  std::uint32_t shard);

}  // namespace onesum::collective
