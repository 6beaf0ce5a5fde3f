#include "cli/bench_gpus.h"

#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/gpu_report.h"
#include "base/amounts.h"

namespace onesum::cli {
namespace {

std::size_t count_gpus() {
  const std::size_t found = api::count_gpus();
  if (found != 0) return found;
  throw Error(ErrorCode::kUnavailable, "--device-type gpu: no GPU was found: " + api::why_no_gpus());
}

// As CUDA_VISIBLE_DEVICES calls the GPUs that this process sees: a number or a longer name each.
std::vector<std::string> visible_names(std::size_t count) {
  const char* const set = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> names;
  if (set == nullptr) {
    for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return names;
  }
  std::istringstream list(set);
  for (std::string name; names.size() < count && std::getline(list, name, ',');) names.push_back(name);
  return names;
}

}  // namespace

void refuse_missing_gpus(std::size_t devices) {
  const std::size_t found = count_gpus();
  if (devices <= found) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("--devices {}: this process has {}", devices, counted(found, "GPU")));
}

std::vector<std::string> gpus_of_workers(std::size_t workers, std::size_t devices_each) {
  const std::size_t found = count_gpus();
  if (workers * devices_each > found) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} with {} each want {} in all; {} found", counted(workers, "worker"),
                            counted(devices_each, "GPU"), workers * devices_each,
                            found == 1 ? "1 was" : fmt::format("{} were", found)));
  }
  const std::vector<std::string> names = visible_names(found);
  std::vector<std::string> lists;
  for (std::size_t w = 0; w < workers; ++w) {
    const auto first = names.begin() + static_cast<std::ptrdiff_t>(w * devices_each);
    lists.push_back(
        fmt::format("{}", fmt::join(first, first + static_cast<std::ptrdiff_t>(devices_each), ",")));
  }
  return lists;
}

void refuse_too_large_for_gpus(const Workload& workload) {
  const std::size_t needed = workload.needed_bytes() / workload.gpus;
  for (std::size_t i = 0; i < workload.gpus; ++i) {
    const std::size_t there = api::gpu_memory_bytes(i);
    if (needed <= there) continue;
    throw Error(ErrorCode::kResourceExhausted,
                fmt::format("the bench needs {} on each GPU, values and results; GPU:{} has {}",
                            format_bytes(needed), i, format_bytes(there)));
  }
}

}  // namespace onesum::cli
