// What this program does when launchers_test.cc has a launcher start it as a worker.
#pragma once

#include <string_view>

namespace onesum::cluster {

// Returns what main shall return. A worker that has done what `task` says prints a line of its own.
int run_launched_worker(std::string_view task);

}  // namespace onesum::cluster
