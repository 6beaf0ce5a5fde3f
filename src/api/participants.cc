#include "api/participants.h"

#include "cluster/environment.h"

namespace onesum::api {

cluster::Invitation participants() { return cluster::process_invitation(); }

}  // namespace onesum::api
