// Binds a native collective: what each device of this process has of every tensor that it touches.
#pragma once

#include <memory>
#include <span>

#include "engine/native.h"
#include "exec/program.h"
#include "exec/scene.h"
#include "plan/plan.h"

namespace onesum::exec {

// `communicators`: by group of the plan; null of those without a device here. Throws unimplemented where
// there is none for the step.
void bind_native(const plan::Step& step, const Scene& scene,
                 std::span<const std::shared_ptr<engine::Communicator>> communicators, Program& program,
                 BoundStep& bound);

}  // namespace onesum::exec
