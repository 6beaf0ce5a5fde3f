// A step in two short lines, as drawings show it.
#pragma once

#include <cstddef>
#include <string>

#include "plan/plan.h"

namespace onesum::plan {

struct StepLabel {
  std::string head;                // "reduce [2]": what, and which chunks
  std::string formula;             // "out, →3 = (←1 + in) / 4"
  std::size_t formula_length = 0;  // in characters, which are not all bytes
};

// Buffers on the step's device are in, out, t0 (a temporary); on others they carry the device's number: in2.
// →3 is a message to device 3, ←1 one from device 1. A formula of more than `longest` characters counts
// instead: "4 results", "sum of 16". Σ(in, in1, …) is the sum by a native collective of these and of what
// other ranks bring.
StepLabel step_label(const Plan& plan, StepRef ref, std::size_t longest);

}  // namespace onesum::plan
