// Who takes part in this process's cluster, for the tool.
#pragma once

#include "cluster/invitation.h"

namespace onesum::api {

// As the environment of this process says. Nobody is met and nothing is published. Throws what
// cluster::read_invitation throws.
cluster::Invitation participants();

}  // namespace onesum::api
