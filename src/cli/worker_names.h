// Workers embedded in this process, as the tool names them, and the operations on them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/cross_device_ops.h>

namespace onesum::cli {

std::string worker_name(std::size_t rank);  // "/job:worker/task:3"
std::vector<std::string> worker_names(std::size_t workers);

// All-reduces by `spec` over `workers` (absent: one) of so many devices each; without a spec
// ReductionToOneDevice, on them or, if no workers are given either, on this process.
std::unique_ptr<CrossDeviceOps> make_ops(const std::optional<AllReduceSpecs>& spec,
                                         const std::optional<std::size_t>& workers, std::size_t devices,
                                         int num_packs = 0, const std::optional<std::string>& reduce_to = {},
                                         const std::string& device_type = "CPU");

}  // namespace onesum::cli
