// Plans made of plans over the same devices: packs of a batch side by side, or one after the other.
//
// The result has the packs, channels, groups, buffers and steps of all, renumbered in the order given;
// parallel channels of the same two devices get numbers of their own, and so do temporaries; equal groups
// become one. It claims the order of additions that all of them claim, or lists them ("canonical + ring");
// the same with the algorithm.
#pragma once

#include <cstdint>
#include <span>

#include "plan/plan.h"

namespace onesum::plan {

// kShared: the ith lane of a rank runs its steps of the first plan, then of the second, and so on; there are
// as many lanes as the widest plan has. kSeparate: every plan keeps lanes of its own, which run side by side;
// not for plans with native steps, which would have no order then.
enum class LaneUse : std::uint8_t { kShared, kSeparate };

// Plans that have nothing to do with each other. Proved if each of them is (plan/verify.h): none waits for
// another, and shared lanes take them in the same order everywhere; native steps must be in the first lane of
// their rank, so that these are ordered too. Throws invalid_argument if there is no
// plan or they are not over the same devices.
Plan side_by_side(std::span<const Plan* const> plans, LaneUse lanes = LaneUse::kShared);
Plan side_by_side(std::span<const Plan> plans, LaneUse lanes = LaneUse::kShared);

// The same, but on each rank no step of a plan begins before all steps of the plans before it are done on
// that rank.
Plan in_sequence(std::span<const Plan> plans);

}  // namespace onesum::plan
