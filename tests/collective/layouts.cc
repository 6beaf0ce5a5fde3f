#include "collective/layouts.h"

#include "base/element.h"

namespace onesum::collective {

std::string Layout::name() const {
  return std::to_string(workers) + "x" + std::to_string(devices) + (order.empty() ? "" : " permuted");
}

Topology Layout::topology() const {
  Topology topology;
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    topology.hosts.push_back(worker * devices);
    topology.device_rank.insert(topology.device_rank.end(), static_cast<std::size_t>(devices), worker);
  }
  return topology;
}

Task Layout::task(ReduceOp op, DType dtype, bool in_place) const {
  const std::int32_t n = workers * devices;
  const Element element = element_of(dtype);
  Task task;
  task.accumulator = accumulator_of(op, element);
  task.output = element_of(result_dtype(op, dtype));
  task.divisor = op == ReduceOp::kMean ? n : 1;
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t device = order.empty() ? i : order[static_cast<std::size_t>(i)];
    task.replicas.push_back({device, element});
    task.destinations.push_back({device, in_place ? i : -1});
  }
  return task;
}

std::vector<Scheme> all_schemes() {
  constexpr Algorithm kAll[] = {
      Algorithm::kNccl,   Algorithm::kRing,           Algorithm::kHalvingDoubling, Algorithm::kShuffleHosts,
      Algorithm::kDirect, Algorithm::kShuffleDevices, Algorithm::kHierarchicalCopy};
  std::vector<Scheme> schemes;
  for (const Algorithm across : kAll) {
    Scheme scheme;
    scheme.across = across;
    schemes.push_back(scheme);
    for (const Algorithm inside : kAll) {
      scheme.inside = inside;
      schemes.push_back(scheme);
    }
  }
  return schemes;
}

}  // namespace onesum::collective
