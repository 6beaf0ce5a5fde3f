// What a call would do and why, in words.
#pragma once

#include <string>

#include "planner/planner.h"

namespace onesum::api {

std::string explain(const planner::Planned& planned);

}  // namespace onesum::api
