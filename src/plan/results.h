// Whether the destinations of a plan's packs hold what they should. A part of plan/verify.h.
#pragma once

#include <vector>

#include "plan/expressions.h"
#include "plan/locations.h"
#include "plan/plan.h"
#include "plan/symbolic.h"
#include "plan/verify.h"

namespace onesum::plan {

// Judges the contents at the end of a plan; throws invalid_argument naming the buffer, the chunk and who
// wrote it.
Proof check_results(const Plan& plan, const Locations& locations, const std::vector<Content>& contents,
                    Expressions& expressions);

}  // namespace onesum::plan
