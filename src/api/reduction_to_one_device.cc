#include <onesum/cross_device_ops.h>

#include "api/cluster_state.h"
#include "planner/policy.h"
#include "planner/request.h"

namespace onesum {
namespace {

planner::Policy policy_of(const std::optional<std::string>& reduce_to_device, bool has_function,
                          const Cluster& cluster) {
  planner::Policy policy;
  policy.name = "ReductionToOneDevice";
  policy.has_accumulation_fn = has_function;
  if (reduce_to_device) {
    // Any device of the workers will do: it need not be among sources or destinations.
    const Cluster::State& state = cluster.state();
    planner::Placement placement{state.shared_defaults(), {}, state.workers};
    placement.why_not_served = state.why_not_served();
    policy.reduce_to_device = planner::place(Device(*reduce_to_device), placement, "reduce_to_device");
  }
  return policy;
}

}  // namespace

ReductionToOneDevice::ReductionToOneDevice(const std::optional<std::string>& reduce_to_device,
                                           const AccumulationFn& accumulation_fn,
                                           const std::optional<Cluster>& cluster)
    : CrossDeviceOps(
          policy_of(reduce_to_device, static_cast<bool>(accumulation_fn), cluster.value_or(Cluster::local())),
          accumulation_fn, cluster) {}

}  // namespace onesum
