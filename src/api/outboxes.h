// How much of a call two workers may have under way between them.
#pragma once

#include <cstddef>

#include "engine/transport.h"

namespace onesum::api {

struct OutboxRequest {
  std::size_t workers = 1;
  bool is_spread = false;   // over several machines
  std::size_t bytes = 0;    // ONESUM_OUTBOX_BYTES
  bool by_network = false;  // also on one machine
  bool is_crowded = false;  // on one machine, more than it has cores for them
};

// The limits of the transport between the workers of a group. Alike everywhere: results depend on nothing of
// this, but both ends must cut alike. Throws invalid_argument, naming the variable and what it needs, if the
// bytes are too few for so many workers.
engine::Limits limits_of(const OutboxRequest& request);

}  // namespace onesum::api
