// Divides the work of a step among units.
#pragma once

#include <cstddef>
#include <vector>

#include "exec/scene.h"
#include "exec/work.h"

namespace onesum::exec {

struct DividedWork {
  std::vector<Work> works;        // in this order
  std::size_t staging_bytes = 0;  // of the lane at hand
};

// Where the unit that works does not reach an operand, who owns its memory copies it to or from staging
// memory, a part of the step at a time.
DividedWork divided(Work work, const Scene& scene);

}  // namespace onesum::exec
