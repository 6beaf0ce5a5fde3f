// The engine for CPU memory of this process.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "engine/device.h"

namespace onesum::engine {

struct HostOptions {
  // How many threads may work on one call, the caller included. 0: as many as the cores this process may use
  // (affinity mask and cgroup quota); more than that are allowed, but then they sleep as soon as they are
  // idle.
  unsigned threads = 0;
  // How many bytes of released memory are kept for reuse. Absent: a quarter of physical memory.
  std::optional<std::size_t> pool_limit_bytes;
};

// Threads start at the first call that can use them.
std::unique_ptr<ThreadedEngine> make_host_engine(const HostOptions& options = {});

}  // namespace onesum::engine
