// Collective values as calls: what they are to the planner, and what is wrong with them by themselves.
#pragma once

#include <onesum/collective.h>

#include "api/describe.h"
#include "api/pairs.h"
#include "planner/policy.h"

namespace onesum::api {

CallTraits traits_of(const Collective& call) noexcept;
Pairs pairs_of(const Collective& call);  // refers to the argument

// Throws invalid_argument. `workers`: of the cluster.
void check(const Collective& call, const planner::Policy& policy, int workers);

// A call that is only planned.
planner::Request request_of(const CollectiveSpec& spec, const CommunicationOptions& options);

}  // namespace onesum::api
