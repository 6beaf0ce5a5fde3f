// Who works for the devices of a plan: the host for its CPUs, an engine for each device that works by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/device.h"
#include "exec/program.h"

namespace onesum::exec {

class Units {
 public:
  // `queued`: by device, null of the host's; none: empty.
  Units(std::size_t devices, std::span<engine::QueuedEngine* const> queued) : of_device_(devices, kHost) {
    for (std::size_t d = 0; d < queued.size(); ++d) {
      if (queued[d] == nullptr) continue;
      const auto known = std::ranges::find(engines_, queued[d]);
      of_device_[d] = static_cast<Unit>(known - engines_.begin() + 1);
      if (known == engines_.end()) engines_.push_back(queued[d]);
    }
  }

  const std::vector<engine::QueuedEngine*>& all() const { return engines_; }
  Unit of(std::int32_t device) const { return of_device_[static_cast<std::size_t>(device)]; }

  bool reaches(Unit unit, Unit owner) const {
    if (unit == owner) return true;
    return unit != kHost && owner != kHost && engines_[unit - 1u]->reaches(*engines_[owner - 1u]);
  }

 private:
  std::vector<engine::QueuedEngine*> engines_;
  std::vector<Unit> of_device_;
};

}  // namespace onesum::exec
