// Whether the destinations of a plan's packs hold what they should. A part of plan/verify.h.
#pragma once

#include <vector>

#include "plan/expressions.h"
#include "plan/locations.h"
#include "plan/plan.h"
#include "plan/symbolic.h"
#include "plan/verify.h"

namespace onesum::plan {

// The buffer of each destination of a pack. Throws invalid_argument unless each has exactly one: its kOutput,
// or the kInOut on its device.
std::vector<std::int32_t> result_buffers(const Plan& plan, std::int32_t pack);

// Judges the contents at the end of a plan; throws invalid_argument naming the buffer, the chunk and who
// wrote it.
Proof check_results(const Plan& plan, const Locations& locations, const std::vector<Content>& contents,
                    Expressions& expressions);

}  // namespace onesum::plan
