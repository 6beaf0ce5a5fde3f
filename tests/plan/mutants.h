// Plans with one random fault in one step.
#pragma once

#include <random>
#include <string>

#include "plan/plan.h"

namespace onesum::plan {

struct Mutant {
  Plan plan;
  std::string what;  // "drops lane 0 step 3"
};

// May be a plan that is not well formed, or one that is as good as the original.
Mutant mutate(const Plan& plan, std::mt19937_64& random);

}  // namespace onesum::plan
