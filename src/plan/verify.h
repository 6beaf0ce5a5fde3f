// Proves that a plan computes what its packs' contracts say, whatever the sizes and however fast its lanes
// run.
//
// Proved: the plan is well formed (plan/well_formed.h) and follows the rules of types and roles
// (plan/rules.h); every send has its receive, in order, every view its release, and nobody waits for ever
// even with one slot per channel (plan/progress.h); there is no race (plan/races.h); no step reads memory
// that nobody wrote, or touches a pack whose counts its rank does not know yet; every destination of every
// pack exists once and holds what the pack's contract says (plan.h), in every chunk the same expression on
// every device: each replica's contribution exactly once, divided by the pack's divisor exactly once, in the
// pack's output type. A plan whose `order` is "canonical" adds in the canonical order (plan.h),
// up to swapping the operands of an addition, without rounding partial sums. What a kCall computes is taken
// on trust; it counts as using each of its sources once.
//
// Takes less than a microsecond a step, for millions of them. Thread-safe: it keeps nothing.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

struct PackProof {
  bool canonical = false;  // whether all its sums are, whatever the plan claims
  std::string expression;  // what chunk 0 of the first destination holds: "((r0 + r1) + r2) / 3"; cut if long
};

struct Proof {
  std::vector<PackProof> packs;
};

// Throws invalid_argument naming the two steps, or the step and the buffer, that are at fault, or saying that
// the plan is too large: more than 2^20 lanes, or 2^26 chunks in all buffers (views and slots aside); or, for
// lanes of a rank that are ordered through other ranks only, what plan/races.h says.
Proof verify(const Plan& plan);

}  // namespace onesum::plan
