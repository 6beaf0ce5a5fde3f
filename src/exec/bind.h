// Binds a plan: chunks to offsets, buffers to tensor slots, messages to memory, types to kernels.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/device.h"
#include "engine/native.h"
#include "engine/transport.h"
#include "exec/program.h"
#include "plan/pack_table.h"
#include "plan/plan.h"

namespace onesum::exec {

// What a program is bound for. The engines outlive it.
struct Site {
  engine::ThreadedEngine& host;
  OwnRank own{};            // the rank of this process; absent: the program holds the lanes of all ranks
  engine::Limits limits{};  // of the transport between processes; of messages inside one if bytes is 0
  std::vector<engine::NearBoxes> near{};  // of the transport, by rank; none: empty
  // By device of the plan: the engine of those that work by themselves, null of the host's. None: empty.
  std::vector<engine::QueuedEngine*> queued{};
  // By group of the plan; null of those without a device here. None: empty.
  std::vector<std::shared_ptr<engine::Communicator>> communicators{};
};

// `tables`: of each pack.
std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, const Site& site);

}  // namespace onesum::exec
