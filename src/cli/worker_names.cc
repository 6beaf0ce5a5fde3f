#include "cli/worker_names.h"

#include <onesum/all_reduce.h>

#include "api/study.h"

namespace onesum::cli {

std::string worker_name(std::size_t rank) { return "/job:worker/task:" + std::to_string(rank); }

std::vector<std::string> worker_names(std::size_t workers) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < workers; ++rank) names.push_back(worker_name(rank));
  return names;
}

std::vector<std::string> own_device_names(const std::string& type, std::size_t devices) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < devices; ++d) names.push_back(type + ":" + std::to_string(d));
  return names;
}

std::vector<std::string> device_names(const std::vector<std::string>& workers, const std::string& type,
                                      std::size_t devices_each) {
  std::vector<std::string> names;
  for (const std::string& worker : workers) {
    for (const std::string& device : own_device_names(type, devices_each)) {
      names.push_back(std::string(worker).append("/device:").append(device));
    }
  }
  return names;
}

std::unique_ptr<CrossDeviceOps> make_ops(const OpsOptions& options) {
  const auto each = static_cast<int>(options.devices);
  if (options.spec) {
    const std::vector<std::string> names = worker_names(options.workers.value_or(1));
    const Cluster cluster =
        options.machines ? api::embedded_on_machines(names, each, options.device_type, *options.machines)
                         : Cluster::embedded(names, each, options.device_type);
    return std::make_unique<MultiWorkerAllReduce>(names, each, *options.spec, options.num_packs, 0, 10,
                                                  cluster);
  }
  std::optional<Cluster> cluster;
  if (options.workers) {
    cluster = Cluster::embedded(worker_names(*options.workers), each, options.device_type);
  } else if (options.device_type != "CPU") {
    cluster = Cluster::local(own_device_names(options.device_type, options.devices));
  }
  return std::make_unique<ReductionToOneDevice>(options.reduce_to, AccumulationFn(), cluster);
}

}  // namespace onesum::cli
