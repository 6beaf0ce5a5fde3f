// The communicators of a cluster: one for each set of GPUs over which a native collective runs, made when a
// plan first needs it and kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/session.h"
#include "base/clock.h"
#include "engine/native.h"
#include "planner/planner.h"

namespace onesum::api {

class Communicators {
 public:
  // By group of the plan, null of those without a device of this process. Inside a turn of the cluster's
  // sequence; `session`: with whom there are groups in common, who all ask in the same call. Throws
  // unavailable if the library for native collectives cannot be used.
  std::vector<std::shared_ptr<engine::Communicator>> of(const planner::Planned& planned, Session* session,
                                                        Clock::time_point deadline);

 private:
  std::map<std::vector<std::string>, std::shared_ptr<engine::Communicator>> known_;  // by names of devices
};

}  // namespace onesum::api
