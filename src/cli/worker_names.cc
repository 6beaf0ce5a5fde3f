#include "cli/worker_names.h"

#include <onesum/all_reduce.h>

namespace onesum::cli {

std::string worker_name(std::size_t rank) { return "/job:worker/task:" + std::to_string(rank); }

std::vector<std::string> worker_names(std::size_t workers) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < workers; ++rank) names.push_back(worker_name(rank));
  return names;
}

std::unique_ptr<CrossDeviceOps> make_ops(const std::optional<AllReduceSpecs>& spec,
                                         const std::optional<std::size_t>& workers, std::size_t devices,
                                         int num_packs, const std::optional<std::string>& reduce_to,
                                         const std::string& device_type) {
  const auto each = static_cast<int>(devices);
  if (spec) {
    const std::vector<std::string> names = worker_names(workers.value_or(1));
    return std::make_unique<MultiWorkerAllReduce>(names, each, *spec, num_packs, 0, 10,
                                                  Cluster::embedded(names, each, device_type));
  }
  std::optional<Cluster> cluster;
  if (workers) {
    cluster = Cluster::embedded(worker_names(*workers), each, device_type);
  } else if (device_type != "CPU") {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < devices; ++d) names.push_back(device_type + ":" + std::to_string(d));
    cluster = Cluster::local(names);
  }
  return std::make_unique<ReductionToOneDevice>(reduce_to, AccumulationFn(), cluster);
}

}  // namespace onesum::cli
