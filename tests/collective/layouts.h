// Workers and devices, and the schemes to try on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <onesum/dtype.h>
#include <onesum/options.h>

#include "collective/all_reduce.h"
#include "collective/task.h"

namespace onesum::collective {

// W workers of G devices each, numbered worker by worker; replica i is on `order[i]` (none: on device i).
struct Layout {
  std::int32_t workers = 1;
  std::int32_t devices = 1;
  std::vector<std::int32_t> order;

  std::string name() const;
  Topology topology() const;
  Task task(ReduceOp op, DType dtype, bool in_place) const;
};

// Every algorithm alone, and every pair of them as a hierarchy, in one shard.
std::vector<Scheme> all_schemes();

}  // namespace onesum::collective
