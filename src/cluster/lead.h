// Worker 0's part of a meeting (rendezvous.h).
#pragma once

#include "cluster/rendezvous.h"

namespace onesum::cluster {

// `meeting` is valid and of more than one worker.
Met lead(const Meeting& meeting);

}  // namespace onesum::cluster
