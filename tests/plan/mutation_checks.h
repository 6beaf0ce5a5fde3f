// What verify accepts must be right: shared by the fast and the full test of mutants.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

std::vector<Plan> sample_bases();     // plans written by hand
std::vector<Plan> algorithm_bases();  // plans of the algorithms of src/collective

// Makes `per_plan` mutants of each of these plans; every accepted one is simulated `runs` times, with other
// interleavings and numbers of slots each time. Prints seed and counts.
void check_mutants(const std::vector<Plan>& bases, std::uint64_t seed, int per_plan, int runs);

}  // namespace onesum::plan
