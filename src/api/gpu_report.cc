#include "api/gpu_report.h"

#include <onesum/error.h>

#include "api/engines.h"

namespace onesum::api {

GpuReport report_gpus() {
  const engine::GpuSearch& found = gpus();
  GpuReport report;
  if (found.platform == nullptr) {
    report.reason = found.reason;
    return report;
  }
  engine::GpuPlatform& platform = *found.platform;
  for (int i = 0; i < platform.devices(); ++i) report.gpus.push_back(platform.traits(i));
  report.versions = platform.versions();
  report.plugin = found.plugin;
  try {
    const engine::NativeEngine& nccl = platform.native();
    const std::string description = nccl.description();  // "NCCL 2.28.9"
    report.nccl_version = description.substr(description.find(' ') + 1);
    report.nccl_file = nccl.file();
  } catch (const Error& error) {
    report.nccl_reason = error.what();
  }
  return report;
}

std::size_t count_gpus() {
  const engine::GpuSearch& found = gpus();
  return found.platform == nullptr ? 0 : static_cast<std::size_t>(found.platform->devices());
}

const std::string& why_no_gpus() { return gpus().reason; }

std::size_t gpu_memory_bytes(std::size_t index) {
  return gpus().platform->traits(static_cast<int>(index)).memory_bytes;
}

}  // namespace onesum::api
