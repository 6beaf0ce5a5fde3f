// The part of every worker but worker 0 in a meeting (rendezvous.h).
#pragma once

#include "cluster/rendezvous.h"

namespace onesum::cluster {

// `meeting` is valid and of more than one worker.
Met join(const Meeting& meeting);

}  // namespace onesum::cluster
