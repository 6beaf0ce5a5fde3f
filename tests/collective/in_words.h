// Executes a plan on words instead of numbers, with nothing of src/plan but the plan itself: what every
// result is a sum of, and in which order it was added up, as it was written.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace onesum::collective {

// By destination, then by chunk: "float16((r0+r1)/2)". A rounding to another type than that of the sum is
// written as a function. Of plans with one pack that get to their end; an empty list if this one does not.
std::vector<std::vector<std::string>> results_in_words(const plan::Plan& plan);

// What the plan's lanes do, by rank: one line a step, buffers and channels by what they are and not by
// number, temporaries in the order in which their rank first uses them. Lanes of a rank in the order of the
// plan.
std::vector<std::string> steps_of_rank(const plan::Plan& plan, std::int32_t rank);

}  // namespace onesum::collective
