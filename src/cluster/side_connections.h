// Connections for messages between the members of a group, one for each pair, beside the links that all
// groups share (links.h). Of two members the one with the higher rank calls, where the other one has said
// over the link, and both prove that they are meant, by a secret that was made for this group (handshake.h).
// Nobody listens any more when all are there.
//
// Threads: one at a time.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/epoch.h"

namespace onesum::cluster {

// With the others of `ranks`, all of which do the same at the same time: sockets, by rank of the group;
// nothing was read or written but what brought them about, and nothing is by others before all are ready.
// Throws the verdict if the epoch ends meanwhile, unavailable where this worker cannot listen,
// deadline_exceeded naming who was not reached and why.
std::vector<Fd> connect_beside_links(Epoch& epoch, std::span<const int> ranks, Clock::time_point deadline);

}  // namespace onesum::cluster
