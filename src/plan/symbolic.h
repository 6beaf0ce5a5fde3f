// Executes a plan on expressions instead of numbers: what every chunk of every buffer holds in the end.
#pragma once

#include <vector>

#include "plan/expressions.h"
#include "plan/locations.h"
#include "plan/plan.h"
#include "plan/progress.h"

namespace onesum::plan {

// What a chunk of a buffer holds, and who wrote it (nobody: a replica that was there from the beginning).
struct Content {
  Expression value = kNothing;
  StepRef writer;
};

// Contents at the end, by location. For a plan that gets to its end and is free of races (plan/progress.h,
// plan/races.h), so that any order of its steps gives the same. Throws invalid_argument naming the step and
// the chunk of the buffer if a step reads what nobody wrote, or the step and the pack if it touches a pack
// split by counts before its rank knows them; in a plan of one rank they are always known.
std::vector<Content> execute(const Plan& plan, const Schedule& schedule, const Locations& locations,
                             Expressions& expressions);

}  // namespace onesum::plan
