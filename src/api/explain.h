// What a call would do and why, in words.
#pragma once

#include <string>

#include "planner/planner.h"

namespace onesum::api {

// `planned` is of this planner, for a call with these options.
std::string explain(const planner::Planned& planned, const planner::Planner& planner,
                    const CommunicationOptions& options);

}  // namespace onesum::api
