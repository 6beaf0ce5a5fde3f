// What was found of GPUs, and of a network that could reach their memory, for people who ask: the tool.
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

// What UCX says of itself, if it may use every transport that it finds. (In engines.cc.)
struct NetworkReport {
  std::string version;  // empty: there is no UCX
  std::string reason;   // why not
  std::vector<std::string> memory_types;
};
NetworkReport report_network();

// What was found of GPUs, in parts.
std::size_t count_gpus();
const std::string& why_no_gpus();
std::size_t gpu_memory_bytes(std::size_t index);

}  // namespace onesum::api
