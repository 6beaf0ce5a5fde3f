#include "planner/select.h"

#include <fmt/format.h>

namespace onesum::planner {

bool uses_function(CallKind kind, const Policy& policy) noexcept {
  return policy.has_accumulation_fn && (kind == CallKind::kReduce || kind == CallKind::kBatchReduce);
}

Selection select(const PackOfStreams& pack, CallKind kind, const Policy& policy,
                 const std::vector<Device>& devices) {
  Selection selection;
  selection.algorithm = "one_device";
  if (kind == CallKind::kBroadcast) {
    selection.on = devices[static_cast<std::size_t>(pack.task.replicas.front().device)];
    selection.reason =
        fmt::format("a broadcast copies from where the value is, {}", selection.on.to_string());
    return selection;
  }
  if (policy.reduce_to_device) {
    selection.on = *policy.reduce_to_device;
    selection.reason = fmt::format("{} was given reduce_to_device {}", policy.name, selection.on.to_string());
  } else {
    selection.on = devices[static_cast<std::size_t>(pack.task.destinations.front().device)];
    selection.reason = fmt::format("{} works on the first device of the destination, {}", policy.name,
                                   selection.on.to_string());
  }
  if (pack.task.contract == plan::Contract::kConcatenate) {
    selection.reason += "; the replicas are copied one after the other";
  } else if (uses_function(kind, policy)) {
    selection.accumulation = collective::Accumulation::kFunction;
    selection.reason += ", with the caller's accumulation_fn";
  }
  return selection;
}

}  // namespace onesum::planner
