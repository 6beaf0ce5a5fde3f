// Whether a plan gets to its end: every message is received, every slot returned, nobody waits for ever.
//
// Lanes are run, abstractly, as far as they go, with ONE slot per channel. If sends of a channel are ordered
// among themselves, and receives too (plan/races.h checks it), what a lane can do does not depend on how fast
// others are, so one run speaks for all; and more slots only let more happen.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

// All steps of a plan in one order in which they can run with one slot per channel. Message i of a channel is
// what its ith send wrote and its ith recv exposes. The native steps of one collective follow each other
// without a step of another kind between them.
using Schedule = std::vector<StepRef>;

// For a well-formed plan that follows the rules (plan/rules.h). Throws invalid_argument naming the steps
//  - where a receive expects other chunks, another pack or another type than was sent;
//  - where a view is read before its receive, after its release, or outside its message, or is released
//  unreceived;
//  - where lanes wait for each other, and for what; a counts waits until every rank has come to it;
//  - where ranks come to the counts of packs in different orders, or twice to those of one;
//  - where ranks that meet for a native collective are not about the same, or it has not one root; a native
//    waits until every rank of its group has come to it, so ranks that have them in different orders wait for
//    ever;
//  - where a message is left unreceived, or a view unreleased, at the end.
Schedule run_to_end(const Plan& plan);

}  // namespace onesum::plan
