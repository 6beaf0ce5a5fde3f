// The processes below this one.
#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

namespace onesum::cli {

// Makes this process the one that inherits whatever its descendants leave behind.
void adopt_orphans();

// The living descendants of this process, children first. Those that have ended and were not waited for do
// not count; one whose parent ends at this moment may be missing.
std::vector<pid_t> living_descendants();

// Kills them all, and calls `ended` with the status of each child that ended, also before. Needs
// adopt_orphans(). Returns those that would not go within ten seconds, which only the kernel can hold.
std::vector<pid_t> kill_descendants(const std::function<void(pid_t pid, int status)>& ended);

}  // namespace onesum::cli
