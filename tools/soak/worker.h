// A worker of the soak: calls until it is killed, expelled, or told to stop.
#pragma once

#include "counts.h"

namespace onesum::soak {

// Joins the environment's cluster as `rank`. Calls follow from the seed, alike on all workers. Returns when
// there is nobody to go on with.
void work(int rank, unsigned seed, Counts& counts);

}  // namespace onesum::soak
