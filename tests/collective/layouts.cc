#include "collective/layouts.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/element.h"

namespace onesum::collective {

std::string Layout::name() const {
  const std::string placed = order.empty() ? "" : fmt::format(" replicas on {}", fmt::join(order, ","));
  const std::string shared = machines.empty() ? "" : fmt::format(" machines {}", fmt::join(machines, ","));
  return fmt::format("{}x{}{}{}{}", workers, devices, placed, own_hosts ? " with hosts" : "", shared);
}

std::int32_t Layout::num_replicas() const {
  return order.empty() ? workers * devices : static_cast<std::int32_t>(order.size());
}

Topology Layout::topology() const {
  Topology topology;
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    topology.hosts.push_back(own_hosts ? workers * devices + worker : worker * devices);
    topology.device_rank.insert(topology.device_rank.end(), static_cast<std::size_t>(devices), worker);
  }
  for (std::int32_t worker = 0; own_hosts && worker < workers; ++worker) {
    topology.device_rank.push_back(worker);
  }
  topology.machines = machines;
  return topology;
}

Task Layout::task(ReduceOp op, DType dtype, bool in_place) const {
  const std::int32_t n = num_replicas();
  const Element element = element_of(dtype);
  Task task;
  task.accumulator = accumulator_of(op, element);
  task.output = element_of(result_dtype(op, dtype));
  task.divisor = op == ReduceOp::kMean ? n : 1;
  task.combine = combine_of(op);
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t device = order.empty() ? i : order[static_cast<std::size_t>(i)];
    task.replicas.push_back({device, element});
    task.destinations.push_back({device, in_place ? i : -1});
  }
  return task;
}

std::vector<Layout> odd_layouts() {
  std::vector<Layout> layouts = {
      {2, 3, {5, 4, 3, 2, 1, 0}},        // backwards
      {2, 3, {3, 0, 4, 1, 5, 2}},        // workers by turns, the second first
      {3, 2, {0, 2, 4, 1, 3, 5}},        // workers by turns
      {2, 4, {0, 1, 4, 5, 2, 3, 6, 7}},  // two by two: subtrees that are not a worker's own
      {2, 4, {1, 4, 2, 0, 7, 6, 3, 5}},  // anyhow
      {4, 3, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}},
      {3, 4, {0, 4, 5, 8, 9, 10}},     // one, two and three replicas
      {3, 4, {10, 0, 9, 4, 8, 5, 1}},  // three, two and two, mixed
      {3, 3, {7, 1, 4}},               // one device of each worker, not the first
      {4, 2, {2, 3, 6}},               // two of four workers
      {3, 3, {3, 4, 5}},               // the second worker only
      {3, 3, {5, 3}},
      {5, 2, {9}},  // a single replica
      {5, 1, {4, 2, 0, 3, 1}},
  };
  const std::size_t given = layouts.size();
  for (std::size_t i = 0; i < given; ++i) {
    layouts.push_back(layouts[i]);
    layouts.back().own_hosts = true;
  }
  layouts.push_back({3, 2, {}, true});
  return layouts;
}

std::vector<Layout> layouts_with_machines() {
  std::vector<Layout> layouts = {
      {4, 1, {}, false, {0, 0, 1, 1}},
      {4, 2, {}, false, {0, 1, 0, 1}},  // by turns: what a machine has is no branch of the tree
      {4, 2, {}, false, {0, 0, 0, 1}},
      {4, 1, {}, false, {0, 1, 1, 1}},
      {4, 3, {}, false, {1, 1, 0, 0}},  // not in the order of their first workers
      {5, 2, {}, false, {0, 0, 1, 1, 2}},
      {6, 1, {}, false, {2, 0, 1, 1, 0, 2}},
      {6, 2, {}, false, {0, 1, 1, 2, 2, 2}},
      {8, 1, {}, false, {0, 0, 0, 0, 1, 1, 1, 1}},
      {9, 1, {}, false, {0, 1, 2, 0, 1, 2, 0, 1, 2}},
      {4, 2, {7, 0, 6, 1, 5, 2, 4, 3}, false, {0, 0, 1, 1}},
      {4, 3, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}, false, {0, 1, 1, 0}},
      {3, 4, {10, 0, 9, 4, 8, 5, 1}, false, {0, 0, 1}},
      {6, 2, {2, 3, 6, 11}, false, {3, 1, 0, 1, 2, 1}},  // two machines of four have replicas
      {6, 2, {2, 3, 6, 11}, false, {0, 1, 1, 1, 0, 1}},  // one of two has
  };
  const std::size_t given = layouts.size();
  for (std::size_t i = 0; i < given; ++i) {
    layouts.push_back(layouts[i]);
    layouts.back().own_hosts = true;
  }
  return layouts;
}

std::vector<Scheme> all_schemes() {
  constexpr Algorithm kAll[] = {Algorithm::kNccl,
                                Algorithm::kRing,
                                Algorithm::kHalvingDoubling,
                                Algorithm::kShuffleHosts,
                                Algorithm::kDirect,
                                Algorithm::kShuffleDevices,
                                Algorithm::kHierarchicalCopy,
                                Algorithm::kExchange,
                                Algorithm::kMachines,
                                Algorithm::kDoubling,
                                Algorithm::kPool};
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

bool has_ring(const Scheme& scheme) {
  return scheme.across == Algorithm::kRing || scheme.inside == Algorithm::kRing;
}

}  // namespace onesum::collective
