#include "cli/info_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/amounts.h"
#include "cli/json_object.h"

namespace onesum::cli {

std::vector<std::pair<std::string, std::string>> gpu_lines() {
  const api::GpuReport found = api::report_gpus();
  if (found.gpus.empty()) return {{"GPUs", "none: " + found.reason}};
  std::vector<std::pair<std::string, std::string>> lines = {{"GPUs", std::to_string(found.gpus.size())}};
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    lines.emplace_back(fmt::format("  GPU:{}", i),
                       fmt::format("{}, compute capability {}, {}", found.gpus[i].name,
                                   found.gpus[i].capability, format_bytes(found.gpus[i].memory_bytes)));
  }
  lines.emplace_back("CUDA", fmt::format("runtime {}, driver for {}, through {}", found.versions.runtime,
                                         found.versions.driver, found.plugin));
  lines.emplace_back("NCCL", found.nccl_version.empty()
                                 ? "none: " + found.nccl_reason
                                 : fmt::format("{}, {}", found.nccl_version, found.nccl_file));
  return lines;
}

std::string network_text(const api::NetworkReport& found) {
  if (found.version.empty()) return "none: " + found.reason;
  return fmt::format(
      "{}, reaches memory of kind {}; what lies on GPUs goes through pinned memory of the host",
      found.version, fmt::join(found.memory_types, ", "));
}

void set_network(JsonObject& info) {
  const api::NetworkReport found = api::report_network();
  if (found.version.empty()) {
    info.set("why_no_ucx", found.reason);
    return;
  }
  JsonObject ucx;
  ucx.set("version", found.version).set("memory_types", found.memory_types);
  info.set("ucx", ucx);
}

void set_gpus(JsonObject& info) {
  const api::GpuReport found = api::report_gpus();
  std::vector<JsonObject> gpus;
  for (const auto& gpu : found.gpus) {
    gpus.emplace_back()
        .set("name", gpu.name)
        .set("compute_capability", gpu.capability)
        .set("memory_bytes", gpu.memory_bytes);
  }
  info.set("gpus", gpus);
  if (found.gpus.empty()) {
    info.set("why_no_gpus", found.reason);
    return;
  }
  JsonObject cuda;
  cuda.set("runtime", found.versions.runtime)
      .set("driver", found.versions.driver)
      .set("plugin", found.plugin);
  info.set("cuda", cuda);
  if (found.nccl_version.empty()) {
    info.set("why_no_nccl", found.nccl_reason);
    return;
  }
  JsonObject nccl;
  nccl.set("version", found.nccl_version).set("file", found.nccl_file);
  info.set("nccl", nccl);
}

}  // namespace onesum::cli
