// What the operating system grants this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace onesum {

// How many cores this process may use, at least 1: those of its affinity mask, or fewer where a cgroup
// (version 2) on its path has a CPU quota; a fraction of a core is not counted. `root` is / except in tests.
unsigned available_cores(const std::filesystem::path& root = "/");

// The numbers of the cores in this process's affinity mask, ascending.
std::vector<std::uint32_t> cores_of_process();

// The CPU quota in `root`'s cgroups, in cores; infinity if there is none.
double cpu_quota(const std::filesystem::path& root);

std::size_t physical_memory_bytes() noexcept;

// As the processor reports it, for all cores that share it; 0 if it does not. A virtual machine may own only
// a part.
std::size_t last_level_cache_bytes() noexcept;

}  // namespace onesum
