// Where the steps of a plan are in a drawing, and what flows between them. Used by draw.cc only.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

// A step that moves or computes: a copy, a reduction, a call, or a rank's part of a native collective.
struct Box {
  StepRef ref;
  std::int32_t device = 0;
  std::int32_t row = 0;  // later ones have larger rows; no two boxes of a device share one
};

// What a box uses of another device, or waits for; or, with to < 0, a result that it writes on another
// device; or that two run together.
struct Flow {
  enum class Kind : std::uint8_t {
    kMessage,  // through a channel
    kMemory,   // read or written where it is
    kWait,     // no data
    kMeeting,  // both are parts of one native collective, in the same row
  };
  Kind kind = Kind::kMemory;
  std::int32_t from = -1;  // box; -1: the replica on from_device
  std::int32_t to = -1;    // box; -1: the result on to_device
  std::int32_t from_device = 0;
  std::int32_t to_device = 0;
  friend bool operator==(const Flow&, const Flow&) = default;
};

struct Layout {
  std::vector<Box> boxes;
  std::vector<Flow> flows;  // none twice
  std::int32_t rows = 0;
};

// Throws invalid_argument if the plan breaks the rules (plan/rules.h) or does not get to its end
// (plan/progress.h).
Layout lay_out(const Plan& plan);

}  // namespace onesum::plan
