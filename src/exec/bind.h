// Binds a plan: chunks to offsets, buffers to tensor slots, messages to memory, types to kernels.
#pragma once

#include <memory>
#include <span>

#include "engine/device.h"
#include "exec/program.h"
#include "plan/pack_table.h"
#include "plan/plan.h"

namespace onesum::exec {

// `tables`: of each pack. All devices of the plan are the engine's, and all its ranks are in this process:
// the program holds the lanes of all of them. The engine outlives the program.
std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, engine::DeviceEngine& engine);

}  // namespace onesum::exec
