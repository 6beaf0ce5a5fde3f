// Gives each pack an algorithm, and the reason in words.
#pragma once

#include <string>

#include "collective/one_device.h"
#include "planner/pack.h"
#include "planner/policy.h"

namespace onesum::planner {

struct Selection {
  std::string algorithm;
  std::string reason;
  Device on;  // where the sum is formed
  collective::Accumulation accumulation = collective::Accumulation::kTree;
};

// Whether a call's dense values go through the user's function: copies never do.
bool uses_function(CallKind kind, const Policy& policy) noexcept;

// `devices`: by their number in the pack's task.
Selection select(const PackOfStreams& pack, CallKind kind, const Policy& policy,
                 const std::vector<Device>& devices);

}  // namespace onesum::planner
