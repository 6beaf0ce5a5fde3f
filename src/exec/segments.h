// Runs the segments of one step on the host's threads, or gives them to a device.
#pragma once

#include <chrono>
#include <cstddef>

#include "exec/program.h"

namespace onesum::exec {

// `pointers`: as Program::pointers. Returns false if the deadline came first: some segments may not have run
// then. Only steps of several segments look at the clock.
bool run_segments(const Program& program, const BoundStep& step, std::byte* const* pointers,
                  std::chrono::steady_clock::time_point deadline);

// The same for a step of a queued unit: gives it to the queue.
void give_segments(const Program& program, const BoundStep& step, std::byte* const* pointers,
                   engine::Queue& queue);

}  // namespace onesum::exec
