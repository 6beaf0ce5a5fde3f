// The library's other collectives, and its messages, as the bench measures them.
//
// A tensor of the workload is the larger side of a call: what is shared out, or what comes of collecting. Its
// parts are equal, one for each replica.
#pragma once

#include <memory>

#include <onesum/collective.h>

#include "cli/bench_cases.h"

namespace onesum::cli {

// The workspace and the operations must outlive what is returned. The workload's elements divide by its
// replicas. kAllToAll is never in place.
std::unique_ptr<Case> collective_case(CrossDeviceOps& ops, Workspace& workspace, Place place, Call call);

// Every worker sends its value to the next one and receives the one before's.
std::unique_ptr<Case> message_case(const Cluster& cluster, Workspace& workspace);

}  // namespace onesum::cli
