// What the classes that all-reduce have in common: filling the policy.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <onesum/all_reduce_spec.h>

#include "planner/policy.h"

namespace onesum::api {

struct Packing {
  int num_packs = 0;
  std::int64_t agg_small_grads_max_bytes = 0;
  int agg_small_grads_max_group = 10;
};

// The policy of the class `name`; `specs` are valid. Refuses a negative number of packs.
planner::Policy all_reduce_policy(const std::string& name, std::span<const AllReduceSpec> specs,
                                  const Packing& packing);

}  // namespace onesum::api
