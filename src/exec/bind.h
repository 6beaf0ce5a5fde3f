// Binds a plan: chunks to offsets, buffers to tensor slots, messages to memory, types to kernels.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/device.h"
#include "engine/transport.h"
#include "exec/program.h"
#include "plan/pack_table.h"
#include "plan/plan.h"

namespace onesum::exec {

// What a program is bound for. All devices of the plan's ranks here are the engine's, which outlives it.
struct Site {
  engine::DeviceEngine& engine;
  OwnRank own{};            // the rank of this process; absent: the program holds the lanes of all ranks
  engine::Limits limits{};  // of the transport between processes; of messages inside one if bytes is 0
  std::vector<engine::NearBoxes> near{};  // of the transport, by rank; none: empty
};

// `tables`: of each pack.
std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, const Site& site);

}  // namespace onesum::exec
