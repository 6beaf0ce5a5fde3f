// Concatenation: every result gets all replicas, one after the other; what a replica brings is known only at
// run time.
//
//   replica    0        1                 its own worker's results are written where they are, the others get
//   results    0 1      0 1               one message for each worker
//
// Steps: one for each replica, 1 message deep. Bytes: every replica is sent once to every other worker that
// has results. Extra memory: none.
#pragma once

#include "collective/task.h"

namespace onesum::collective {

// For tasks of Contract::kConcatenate. `on`: the device that does the work of its worker; elsewhere the
// replicas' own devices and those of the results do.
plan::Plan concatenate(const Topology& topology, const Task& task, std::int32_t on);

}  // namespace onesum::collective
