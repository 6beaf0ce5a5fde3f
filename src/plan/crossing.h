// What a plan sends from one machine to another, where several ranks share one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

// What each machine sends to others. `machines`: of each rank, numbered from 0.
std::vector<LinkCost> sent_between_machines(const Plan& plan, const Sizes& sizes,
                                            std::span<const std::int32_t> machines);

}  // namespace onesum::plan
