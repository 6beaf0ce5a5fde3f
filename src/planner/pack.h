// Groups the streams of a call into packs: virtual vectors that are reduced as one.
//
// Streams whose tasks are alike (types, devices, in place or not) share a pack; packing moves nothing, it
// only makes fewer and larger steps. Concatenations, and values that go through a user's function, stay
// alone.
#pragma once

#include <cstddef>
#include <vector>

#include "collective/task.h"
#include "plan/pack_table.h"
#include "planner/request.h"

namespace onesum::planner {

struct PackOfStreams {
  collective::Task task;
  plan::PackTable table;
  std::vector<std::size_t> streams;  // in their order
};

// Tensor slots are numbered stream by stream: first its replicas, then its results.
std::vector<PackOfStreams> pack_streams(const std::vector<Stream>& streams, bool one_stream_each);

// How many tensor slots the streams have.
std::size_t count_slots(const std::vector<Stream>& streams);

}  // namespace onesum::planner
