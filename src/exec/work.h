// What one bound step does to a run of elements, before addresses and kernels are chosen for it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/device.h"
#include "exec/program.h"
#include "plan/plan.h"

namespace onesum::exec {

// An operand as a unit sees it: where it is, or in the lane's staging memory, from this byte on.
struct View {
  const plan::Operand* operand = nullptr;
  std::optional<std::size_t> staged{};
};

struct Work {
  const plan::Step* step = nullptr;
  Unit unit = kHost;
  std::vector<View> destinations{};
  std::vector<View> sources{};
  engine::ReduceForm form{};
  plan::Extent range{};
  bool sends = true;  // and this is the last of the step's work: messages are complete
};

}  // namespace onesum::exec
