// The packs of a call in words: those that are alike together.
#pragma once

#include <string>

#include "planner/planner.h"

namespace onesum::api {

// A paragraph for each kind of pack: how many there are, their sizes, the algorithm and why, the order of
// additions.
std::string explain_packs(const planner::Planned& planned, const CommunicationOptions& options);

}  // namespace onesum::api
