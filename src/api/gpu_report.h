// What was found of GPUs, for people who ask: the tool.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/gpu.h"

namespace onesum::api {

struct GpuReport {
  std::vector<engine::GpuTraits> gpus;  // by index
  std::string reason;                   // why there are none

  // What follows is known where there are some.
  engine::GpuVersions versions;
  std::string plugin;        // the file
  std::string nccl_version;  // "2.28.9"; empty: it cannot be used
  std::string nccl_file;
  std::string nccl_reason;  // why it cannot be used
};

// Opens all libraries that a call on GPUs would, and takes nothing on the devices.
GpuReport report_gpus();

// The same in parts.
std::size_t count_gpus();
const std::string& why_no_gpus();
std::size_t gpu_memory_bytes(std::size_t index);

}  // namespace onesum::api
