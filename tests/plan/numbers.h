// Numbers for a plan, and what its results must be by the definition of the canonical order, computed without
// anything of src/plan but splits.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "plan/simulate.h"
#include "plan/verify.h"

namespace onesum::plan::numbers {

struct Problem {
  Sizes sizes;
  BytesOfPacks inputs;
  BytesOfPacks expected;
};

// Packs of a few elements per chunk. Where the proof says canonical (or the sum is exact in any order) the
// values are as nasty as they can be: 1e8, 1 and -1e8, subnormals, the largest integers. Elsewhere they are
// small integers, whose sums are exact in any order. Knows float32, float64, float16 and the integers of 32
// and 64 bits; packs that add nothing may have any type.
Problem make(const Plan& plan, const Proof& proof, std::uint64_t seed);

// Simulates with several interleavings and numbers of slots. Empty if all results are right, else what is
// wrong.
std::string check(const Plan& plan, const Problem& problem, std::uint64_t seed, int runs);

}  // namespace onesum::plan::numbers
