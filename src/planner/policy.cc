#include "planner/policy.h"

#include <fmt/format.h>

namespace onesum::planner {

std::string to_string(const Policy& policy) {
  std::string text = policy.name;
  if (policy.reduce_to_device) text += " on " + policy.reduce_to_device->to_string();
  if (policy.has_accumulation_fn) text += " with an accumulation_fn";
  for (const AllReduceSpec& spec : policy.specs)
    text += fmt::format(" {}#{}:{}", spec.alg, spec.shards, spec.limit);
  if (policy.num_packs > 0) text += fmt::format(", {} packs", policy.num_packs);
  if (policy.small_tensor_max_bytes > 0) {
    text += fmt::format(", up to {} tensors of up to {} bytes together", policy.small_tensors_max_group,
                        policy.small_tensor_max_bytes);
  }
  return text;
}

}  // namespace onesum::planner
