// Whether anything that two steps touch, one of them writing, is touched in an order that the plan enforces.
//
// What orders steps: their lane, waits, and a message (its send comes before its receive). That a slot must
// be free before it is filled again orders steps too, but only while a channel has a single slot; it is not
// counted, so the result holds for any number of slots.
#pragma once

#include "plan/plan.h"
#include "plan/progress.h"

namespace onesum::plan {

// Throws invalid_argument naming the two steps and the chunk of the buffer, or the channel, that they touch:
// "lane 0 step 3 (copy ...) reads b7 chunk 1, which lane 1 step 0 (reduce ...) writes, and nothing orders
// them". A receive writes its channel's view and a release takes it away; sends of one channel must be
// ordered, and receives and releases of one channel too. A counts writes what its rank knows of a pack, which
// every step of the rank that touches the pack reads; those of a rank must be ordered.
//
// Linear in the steps, where lanes of a rank are ordered inside their rank. Where they are not, an order that
// goes through other ranks is looked for as well, in lanes * (lanes + channels) numbers, of which there may
// be 2^27.
void check_races(const Plan& plan, const Schedule& schedule);

}  // namespace onesum::plan
