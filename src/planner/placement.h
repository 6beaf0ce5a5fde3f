// Where a call may take place: devices, the workers that own them, and what completes a device string.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <onesum/device.h>

namespace onesum::planner {

// Which devices take part, and what completes a partial device string.
struct Placement {
  Device defaults;                       // complete
  std::vector<Device> devices;           // complete; none: every device of the workers
  std::vector<Device> workers{};         // job, replica and task of each rank; none: the default's alone
  std::vector<Device> others{};          // that take part beside `devices`
  bool all_workers = false;              // what is all-reduced has a replica on every worker
  std::vector<std::int32_t> machines{};  // of each rank; none: all are on one
  bool by_network = false;               // between ranks of one machine, too
  bool workers_share_gpus = false;       // all are in one process: GPU:1 of one is GPU:1 of another
  // Why no engine serves a device of this process that is not a CPU; empty: one does, or it is another
  // process's. Null: none does.
  std::function<std::string(const Device& device)> why_not_served{};
};

// Whether a complete device is the worker's.
bool owns(const Device& worker, const Device& device);

// `device` completed; refused if it does not take part, or has no engine. Where calls are only planned it
// needs none, if it is one of those that the placement names.
Device place(const Device& device, const Placement& placement, const std::string& what,
             bool only_planned = false);

// The rank of the worker that owns a placed device.
std::int32_t rank_of(const Device& device, const Placement& placement);

// What a destination string stands for: its device on every worker that it may mean, in rank order, if it
// names no task; otherwise itself.
std::vector<Device> on_every_worker(const Device& device, const Placement& placement);

}  // namespace onesum::planner
