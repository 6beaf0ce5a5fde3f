#include <algorithm>

#include <fmt/format.h>

#include <onesum/all_reduce.h>
#include <onesum/error.h>

#include "api/all_reduce_policy.h"
#include "api/cluster_state.h"
#include "api/worker_devices.h"
#include "cluster/environment.h"
#include "planner/request.h"
#include "planner/spec.h"

namespace onesum {
namespace {

constexpr const char* kName = "MultiWorkerAllReduce";

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument,
              std::string(kName) + ": " + fmt::format(format, std::forward<Args>(args)...));
}

int devices_per_worker(int num_gpus_per_worker) { return std::max(num_gpus_per_worker, 1); }

// Refuses a cluster whose workers are others, or come in another order.
void check_same_workers(std::span<const Device> expected, const Cluster& cluster) {
  const std::span<const Device> found = cluster.state().workers;
  const auto [a, b] = std::ranges::mismatch(expected, found);
  const auto rank = a - expected.begin();
  if (a == expected.end() && b == found.end()) return;
  const auto name = [](auto worker, auto end) { return worker == end ? "none" : worker->to_string(); };
  refuse(
      "worker_devices[{}] is {}, worker {} of the cluster is {}; expected the cluster's {} workers in rank "
      "order",
      rank, name(a, expected.end()), rank, name(b, found.end()), found.size());
}

// Refuses a cluster that names its devices, and names too few of them.
void check_device_count(int num_gpus_per_worker, const Cluster& cluster) {
  if (cluster.devices().empty()) return;
  const std::vector<Device>& workers = cluster.state().workers;
  const planner::Placement placement{cluster.state().defaults, {}, workers};
  std::vector<int> counts(workers.size());
  for (const Device& device : cluster.devices()) {
    ++counts[static_cast<std::size_t>(planner::rank_of(device, placement))];
  }
  const auto fewest = std::ranges::min_element(counts);
  if (*fewest < devices_per_worker(num_gpus_per_worker)) {
    refuse("num_gpus_per_worker is {}, and the cluster has {} device(s) on {}", num_gpus_per_worker, *fewest,
           workers[static_cast<std::size_t>(fewest - counts.begin())].to_string());
  }
}

// Values may be on CPUs and on GPUs, as many of either.
Cluster embed(const std::vector<std::string>& worker_devices, int num_gpus_per_worker) {
  Cluster cluster = Cluster::embedded(worker_devices, devices_per_worker(num_gpus_per_worker));
  if (num_gpus_per_worker > 0) {
    cluster.state().gpus = Cluster::embedded(worker_devices, num_gpus_per_worker, "GPU").state().devices;
  }
  return cluster;
}

Cluster cluster_of(const std::vector<std::string>& worker_devices, int num_gpus_per_worker,
                   const std::optional<Cluster>& cluster) {
  const std::vector<Device> workers = api::parse_workers(worker_devices, kName);
  if (num_gpus_per_worker < 0) {
    refuse("num_gpus_per_worker is {}; expected 0 (one CPU for each worker) or more", num_gpus_per_worker);
  }
  const bool has_environment = !cluster && cluster::process_invitation().size > 1;
  if (!cluster && !has_environment) return embed(worker_devices, num_gpus_per_worker);
  const Cluster taken = cluster ? *cluster : Cluster::from_environment();
  check_same_workers(workers, taken);
  check_device_count(num_gpus_per_worker, taken);
  return taken;
}

planner::Policy policy_of(int num_gpus_per_worker, const AllReduceSpecs& specs, const api::Packing& packing) {
  for (std::size_t i = 0; i < specs.values().size(); ++i) {
    if (num_gpus_per_worker == 0 && planner::has_level(specs.values()[i], "psgpu")) {
      refuse("all_reduce_spec[{}] is {} and num_gpus_per_worker is 0; psgpu needs at least 1, pscpu none", i,
             specs.values()[i].alg);
    }
  }
  planner::Policy policy = api::all_reduce_policy(kName, specs.values(), packing);
  policy.all_workers = true;
  return policy;
}

}  // namespace

MultiWorkerAllReduce::MultiWorkerAllReduce(const std::vector<std::string>& worker_devices,
                                           int num_gpus_per_worker, const AllReduceSpecs& all_reduce_spec,
                                           int num_packs, std::int64_t agg_small_grads_max_bytes,
                                           int agg_small_grads_max_group,
                                           const std::optional<Cluster>& cluster)
    : AllReduceCrossDeviceOps(policy_of(num_gpus_per_worker, all_reduce_spec,
                                        {num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group}),
                              cluster_of(worker_devices, num_gpus_per_worker, cluster)) {}

}  // namespace onesum
