// Worker processes with GPUs, that leave them as they found them: with eight emulated ones, or with two real
// ones each.
#pragma once

#include "processes/workers.h"

namespace onesum::testing {

// What a worker answers that has nothing to complain of.
inline constexpr const char* kGood = "good";

// As run_workers. A worker's text also says what it has left behind on its GPUs, and which rules were broken.
std::vector<WorkerEnd> run_gpu_workers(int size, const Body& body, const Environment& more = {});

// Runs them; all answer kGood, but for those that are to die. Skips the test if there are too few GPUs.
void expect_good(int size, const Body& body, const Environment& more = {}, int dying = -1);

}  // namespace onesum::testing
