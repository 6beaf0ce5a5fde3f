// The plan that `onesum plan` is about: that of a call, or one read from a file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/plan_command.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::cli {

struct PlanSubject {
  std::string title;  // "sum of 4 replicas in place: 1 tensor, 2097152 float32, 8 MiB"
  plan::Plan plan;
  bool has_sizes = true;
  plan::Sizes sizes;                      // zeros unless has_sizes
  std::vector<std::string> device_names;  // by number in the plan
};

// Throws Error where the library refuses the call or the text.
PlanSubject plan_of_call(const PlanOptions& options);
PlanSubject plan_of_file(const PlanOptions& options);

}  // namespace onesum::cli
