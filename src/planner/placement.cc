#include "planner/placement.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum::planner {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::string names_of(std::span<const Device> devices) {
  std::string names;
  for (const Device& device : devices) names += (names.empty() ? "" : ", ") + device.to_string();
  return names;
}

void check_served(const Device& device, const Placement& placement, const std::string& what) {
  const std::string reason = placement.why_not_served
                                 ? placement.why_not_served(device)
                                 : fmt::format("no engine for {} devices is there", *device.type());
  if (reason.empty()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{} is on {}: {}", what, device.to_string(), reason));
}

}  // namespace

bool owns(const Device& worker, const Device& device) {
  return worker.task() == device.task() && worker.replica() == device.replica() &&
         worker.job() == device.job();
}

Device place(const Device& device, const Placement& placement, const std::string& what, bool only_planned) {
  const Device complete = device.canonical(placement.defaults);
  const std::span<const Device> workers =
      placement.workers.empty() ? std::span(&placement.defaults, 1) : std::span(placement.workers);
  if (std::ranges::none_of(workers, [&](const Device& worker) { return owns(worker, complete); })) {
    refuse("{} is on {}, which is not a device of {} ({})", what, complete.to_string(),
           workers.size() == 1 ? "this process" : "the cluster's workers", names_of(workers));
  }
  const auto names_it = [&](const std::vector<Device>& devices) {
    return std::ranges::find(devices, complete) != devices.end();
  };
  if (complete.type() != "CPU" && !(only_planned && names_it(placement.devices))) {
    check_served(complete, placement, what);
  }
  if (!placement.devices.empty() && !names_it(placement.devices) && !names_it(placement.others)) {
    refuse("{} is on {}, which is not one of the cluster's {} devices (from {} to {})", what,
           complete.to_string(), placement.devices.size(), placement.devices.front().to_string(),
           placement.devices.back().to_string());
  }
  return complete;
}

std::int32_t rank_of(const Device& device, const Placement& placement) {
  const auto found =
      std::ranges::find_if(placement.workers, [&](const Device& worker) { return owns(worker, device); });
  return found == placement.workers.end() ? 0 : static_cast<std::int32_t>(found - placement.workers.begin());
}

std::vector<Device> on_every_worker(const Device& device, const Placement& placement) {
  if (device.task() || placement.workers.empty()) return {device};
  std::vector<Device> devices;
  for (const Device& worker : placement.workers) {
    const Device its = device.merged_over(worker);
    if (owns(worker, its)) devices.push_back(its);  // not of another job
  }
  return devices.empty() ? std::vector{device} : devices;
}

}  // namespace onesum::planner
