// How this process becomes a worker of a cluster of processes.
#pragma once

#include <memory>

#include "api/session.h"
#include "base/config.h"
#include "cluster/invitation.h"

namespace onesum::api {

// Meets the other workers and connects with them. Blocks until all are there, at most for the join timeout.
// Throws what the rendezvous throws, and invalid_argument where the transport that was asked for cannot reach
// all workers.
std::unique_ptr<Session> join(const cluster::Invitation& invitation, const Config& config);

// Tells machines apart: boot and network namespace, because containers of one machine may not reach each
// other's sockets.
std::string machine_identity(const Config& config);

}  // namespace onesum::api
