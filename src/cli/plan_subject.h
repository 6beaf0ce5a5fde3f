// The plan that `onesum plan` is about: that of a call, a half of one, or one read from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/plan_command.h"
#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::cli {

struct PlanSubject {
  std::string title;  // "sum of 4 replicas in place: 1 tensor, 2097152 float32, 8 MiB"
  plan::Plan plan;
  bool has_sizes = true;
  plan::Sizes sizes;                      // zeros unless has_sizes
  std::vector<std::int32_t> machines;     // of each rank, if it was said how many there are
  std::vector<std::string> device_names;  // by number in the plan
  std::vector<std::string> drawn_names;   // the same, short: a drawing names the workers itself
  std::string explanation;                // of a call, if it was asked for
};

// More devices are for api/study.h, which stores nothing.
inline constexpr std::size_t kMostStoredDevices = 512;

// What the call is, in words.
std::string title_of(const PlanOptions& options);

// All-reduces of one tensor by one algorithm can be looked at without storing a plan.
bool can_be_streamed(const PlanOptions& options);
api::StudiedAllReduce study_of(const PlanOptions& options);
std::size_t elements_of(const PlanOptions& options);

// Throws Error where the library refuses the call or the text.
PlanSubject plan_of_call(const PlanOptions& options);
PlanSubject plan_of_half(const PlanOptions& options);
PlanSubject plan_of_file(const PlanOptions& options);

}  // namespace onesum::cli
