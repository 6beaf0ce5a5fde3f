#include "base/machine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include <sched.h>
#include <unistd.h>

namespace onesum {
namespace fs = std::filesystem;
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostCores = 8192;

// The process's path in the unified hierarchy: the line "0::/path" of /proc/self/cgroup; "" if there is none.
std::string cgroup_path(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

// cpu.max holds "<microseconds of CPU or max> <per microseconds>".
double quota_of(const fs::path& directory) {
  std::ifstream file(directory / "cpu.max");
  double quota = 0;
  double period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

}  // namespace

std::vector<std::uint32_t> cores_of_process() {
  std::vector<std::uint32_t> cores;
  cpu_set_t* const set = CPU_ALLOC(kMostCores);
  if (set == nullptr) return cores;
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (sched_getaffinity(0, bytes, set) == 0) {
    for (std::uint32_t core = 0; core < kMostCores; ++core) {
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(core);
    }
  }
  CPU_FREE(set);
  return cores;
}

double cpu_quota(const fs::path& root) {
  // Mounted there where only version 2 is used, or beside version 1.
  for (const char* mount : {"sys/fs/cgroup", "sys/fs/cgroup/unified"}) {
    std::error_code error;
    if (!fs::exists(root / mount / "cgroup.controllers", error)) continue;
    double quota = quota_of(root / mount);
    fs::path directory = root / mount;
    for (const fs::path& part : fs::path(cgroup_path(root))) {
      directory /= part;
      quota = std::min(quota, quota_of(directory));
    }
    return quota;
  }
  return kNoQuota;
}

unsigned available_cores(const fs::path& root) {
  const auto cores = std::max(1U, static_cast<unsigned>(cores_of_process().size()));
  const double quota = cpu_quota(root);
  return quota >= cores ? cores : std::max(1U, static_cast<unsigned>(quota));
}

std::size_t physical_memory_bytes() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
}

std::size_t last_level_cache_bytes() noexcept {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  return static_cast<std::size_t>(std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
#else
  return 0;
#endif
}

}  // namespace onesum
