// Groups the streams of a call into packs: virtual vectors that are reduced as one.
//
// Only streams whose tasks are alike (types, devices, in place or not) and that take the same way share a
// pack. Packing moves nothing, it only makes fewer and larger steps; a pack's borders need not be those of
// tensors. Concatenations stay alone.
//
// What lies in place is known to its own process alone, and must not show in what goes to others: streams
// that differ in nothing else are made alike first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/task.h"
#include "plan/pack_table.h"
#include "planner/policy.h"
#include "planner/request.h"

namespace onesum::planner {

// Which way a stream goes.
enum class Way : std::uint8_t {
  kOneDevice,    // summed, or copied from, one device
  kConcatenate,  // its replicas one after the other
  kAllReduce,    // by one of the policy's specs
};
struct Route {
  Way way = Way::kOneDevice;
  std::size_t spec = 0;  // kAllReduce: which of the policy's
  friend bool operator==(const Route&, const Route&) = default;
};

// An all-reduce has its results on the devices of its replicas; a stream of any other kind, and any stream of
// a policy without specs, goes to one device. The spec is the first whose limit the tensor does not exceed.
Route route_of(const Stream& stream, CallKind kind, const Policy& policy);

struct PackOfStreams {
  Route route;
  std::size_t number = 0;  // among those of its route
  collective::Task task;
  plan::PackTable table;
  std::vector<std::size_t> streams;  // in their order
};

// Where some of the streams that are alike otherwise are in place and some are not, none is any more: the
// replicas in question are to be copied. Streams without elements go with the others.
void settle_memory(std::vector<Stream>& streams);

// How the tensors of an all-reduce are packed: `num_packs` equal parts of all of them together, or (if that
// is 0) small ones in groups, or (if there is no limit for small ones) as many as fill bytes_per_pack, or
// each by itself; of an algorithm that the library chooses, all together. Empty packs are left out. Tensor
// slots are numbered stream by stream: first its replicas, then its results.
std::vector<PackOfStreams> pack_streams(const std::vector<Stream>& streams, CallKind kind,
                                        const Policy& policy, std::size_t bytes_per_pack);

// How many tensor slots the streams have.
std::size_t count_slots(const std::vector<Stream>& streams);

// How many tensors the streams are about: parts of one count once.
std::size_t count_tensors(const std::vector<Stream>& streams);

// Whether a call's dense values go through the user's function: copies never do.
bool uses_function(CallKind kind, const Policy& policy) noexcept;

}  // namespace onesum::planner
