// A drawing of a plan: devices side by side, time downwards, a box for each step that moves or computes,
// arrows for what flows between devices. SVG with a background of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

struct DrawOptions {
  std::string title;                      // the algorithm's name if empty
  std::vector<std::string> device_names;  // "device 0", … if empty; else one per device
};

inline constexpr std::size_t kMaxDrawnDevices = 16;
inline constexpr std::size_t kMaxDrawnSteps = 600;

// Throws invalid_argument if there are more devices or steps than a drawing can show, the names are not one
// per device, or the plan breaks the rules of types and roles (plan/rules.h) or does not get to its end
// (plan/progress.h).
std::string to_svg(const Plan& plan, const DrawOptions& options = {});

}  // namespace onesum::plan
