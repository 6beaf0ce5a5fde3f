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
                                         int num_packs, const std::optional<std::string>& reduce_to) {
  const auto each = static_cast<int>(devices);
  if (spec) {
    return std::make_unique<MultiWorkerAllReduce>(worker_names(workers.value_or(1)), each, *spec, num_packs);
  }
  std::optional<Cluster> cluster;
  if (workers) cluster = Cluster::embedded(worker_names(*workers), each);
  return std::make_unique<ReductionToOneDevice>(reduce_to, AccumulationFn(), cluster);
}

}  // namespace onesum::cli
