// Turns work into steps of a program: pieces and segments, addresses, kernels.
#pragma once

#include <span>

#include "exec/program.h"
#include "exec/scene.h"
#include "exec/work.h"
#include "plan/pack_table.h"

namespace onesum::exec {

// Appends a step. `tables`: of the whole packs.
void bind_work(const Work& work, const Scene& scene, std::span<const plan::PackTable> tables,
               Program& program);

// Last of all: what describes a step may have moved until then.
void choose_kernels(Program& program);

}  // namespace onesum::exec
