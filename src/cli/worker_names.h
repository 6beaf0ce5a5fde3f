// Workers and devices as the tool names them, and the operations on those embedded in this process.
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

// "CPU:0", …: devices of this process, by their type.
std::vector<std::string> own_device_names(const std::string& type, std::size_t devices);
// Of each worker so many, worker by worker: "/job:worker/task:0/device:CPU:0", …
std::vector<std::string> device_names(const std::vector<std::string>& workers, const std::string& type,
                                      std::size_t devices_each);

struct OpsOptions {
  std::optional<AllReduceSpecs> spec;
  std::optional<std::size_t> workers;
  std::size_t devices = 1;  // of each
  int num_packs = 0;
  std::optional<std::string> reduce_to{};
  std::string device_type = "CPU";
  // Among which the workers are divided, each with GPUs of its own, for calls that are planned only.
  std::optional<std::size_t> machines{};
};

// All-reduces by `spec` over `workers` (absent: one) of so many devices each; without a spec
// ReductionToOneDevice, on them or, if no workers are given either, on this process.
std::unique_ptr<CrossDeviceOps> make_ops(const OpsOptions& options);

}  // namespace onesum::cli
