// What verify accepts must be right: shared by the fast and the full test of mutants.
#pragma once

#include <cstdint>

namespace onesum::plan {

// Makes `per_plan` mutants of each of several plans; every accepted one is simulated `runs` times, with other
// interleavings and numbers of slots each time. Prints seed and counts.
void check_mutants(std::uint64_t seed, int per_plan, int runs);

}  // namespace onesum::plan
