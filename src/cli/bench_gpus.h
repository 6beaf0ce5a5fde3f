// The GPUs that a bench works on: whether there are enough of them, and whose they are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/bench_workspace.h"

namespace onesum::cli {

// Throws unavailable, naming how many there are, or why there are none.
void refuse_missing_gpus(std::size_t devices);

// Worker processes of this machine get GPUs of their own: those of worker 0 come first. Returns the
// CUDA_VISIBLE_DEVICES of each, within what this process sees. Throws as above.
std::vector<std::string> gpus_of_workers(std::size_t workers, std::size_t devices_each);

// Throws resource_exhausted, naming what is needed and what there is, where a GPU has too little memory.
void refuse_too_large_for_gpus(const Workload& workload);

}  // namespace onesum::cli
