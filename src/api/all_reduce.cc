#include <algorithm>

#include <onesum/all_reduce.h>
#include <onesum/error.h>

#include "api/all_reduce_policy.h"
#include "planner/spec.h"

namespace onesum {
namespace api {

planner::Policy all_reduce_policy(const std::string& name, std::span<const AllReduceSpec> specs,
                                  const Packing& packing) {
  if (packing.num_packs < 0) {
    throw Error(ErrorCode::kInvalidArgument, name + ": num_packs is " + std::to_string(packing.num_packs) +
                                                 "; expected 0 (no packing) or more");
  }
  planner::Policy policy;
  policy.name = name;
  policy.specs.assign(specs.begin(), specs.end());
  policy.num_packs = packing.num_packs;
  if (packing.agg_small_grads_max_bytes > 0 && packing.agg_small_grads_max_group > 0) {
    policy.small_tensor_max_bytes = static_cast<std::size_t>(packing.agg_small_grads_max_bytes);
    policy.small_tensors_max_group = packing.agg_small_grads_max_group;
  }
  return policy;
}

}  // namespace api

namespace {

planner::Policy policy_of_one(const std::string& name, const std::string& alg, const api::Packing& packing) {
  planner::check_algorithm(alg, name + ": all_reduce_alg");
  const AllReduceSpec spec{alg};
  return api::all_reduce_policy(name, {&spec, 1}, packing);
}

}  // namespace

AllReduceCrossDeviceOps::AllReduceCrossDeviceOps(const std::string& all_reduce_alg, int num_packs,
                                                 std::int64_t agg_small_grads_max_bytes,
                                                 int agg_small_grads_max_group,
                                                 const std::optional<Cluster>& cluster)
    : AllReduceCrossDeviceOps(
          policy_of_one("AllReduceCrossDeviceOps", all_reduce_alg,
                        {num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group}),
          cluster) {}

AllReduceCrossDeviceOps::AllReduceCrossDeviceOps(const planner::Policy& policy,
                                                 const std::optional<Cluster>& cluster)
    : CrossDeviceOps(policy, {}, cluster) {}

NcclAllReduce::NcclAllReduce(int num_packs, const std::optional<Cluster>& cluster)
    : AllReduceCrossDeviceOps(policy_of_one("NcclAllReduce", "nccl", {num_packs}), cluster) {}

HierarchicalCopyAllReduce::HierarchicalCopyAllReduce(int num_packs, const std::optional<Cluster>& cluster)
    : AllReduceCrossDeviceOps(policy_of_one("HierarchicalCopyAllReduce", "hierarchical_copy", {num_packs}),
                              cluster) {}

}  // namespace onesum
