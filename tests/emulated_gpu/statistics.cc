#include "emulated_gpu/statistics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string_view>

#include <unistd.h>

#include "emulated_gpu/communicator.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/failures.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/violations.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

constexpr int kLeakExitCode = 86;

// In the order of Counted.
constexpr std::array<std::string_view, 11> kNames = {
    "malloc",       "host_alloc", "copy",       "fill",   "launch",   "host_function",
    "event_record", "event_wait", "all_reduce", "reduce", "broadcast"};

std::array<std::atomic<std::size_t>, kNames.size()>
    counts;  // relaxed: numbers for tests that wait by themselves

void report_leaks() {
  EmulatedGpuLive live;
  emulated_gpu_live(&live);
  const bool has_leaks = live.device_allocations + live.pinned_allocations + live.registered_ranges +
                             live.streams + live.events + live.communicators >
                         0;
  if (!has_leaks) return;
  std::fprintf(
      stderr,
      "emulated GPU: left at the exit: %zu device allocations (%zu bytes), %zu pinned allocations (%zu "
      "bytes), %zu registered ranges, %zu streams, %zu events, %zu communicators\n",
      live.device_allocations, live.device_bytes, live.pinned_allocations, live.pinned_bytes,
      live.registered_ranges, live.streams, live.events, live.communicators);
  {
    const std::lock_guard lock(world().mutex);
    for (const auto& [begin, allocation] : world().memory.all()) {
      std::fprintf(stderr, "emulated GPU: left: %s\n", allocation->text().c_str());
    }
  }
  if (settings().fails_at_leaks) _exit(kLeakExitCode);
}

// After the destructors of all objects of the program and of the libraries that use this one.
[[gnu::destructor]] void at_exit() {
  if (settings().has_driver && settings().devices > 0) report_leaks();
}

}  // namespace

void count(Counted kind) { counts[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed); }

}  // namespace onesum::emulated

extern "C" {

void emulated_gpu_live(EmulatedGpuLive* live) {
  using onesum::emulated::MemoryKind;
  onesum::emulated::World& world = onesum::emulated::world();
  const std::lock_guard lock(world.mutex);
  *live = {.device_allocations = world.memory.count(MemoryKind::kDevice),
           .device_bytes = world.memory.bytes(MemoryKind::kDevice),
           .pinned_allocations = world.memory.count(MemoryKind::kPinned),
           .pinned_bytes = world.memory.bytes(MemoryKind::kPinned),
           .registered_ranges = world.memory.count(MemoryKind::kRegistered),
           .streams = world.streams.size(),
           .events = world.events.size(),
           .communicators = onesum::emulated::count_communicators()};
}

std::size_t emulated_gpu_operations(const char* kind) {
  using onesum::emulated::kNames;
  const auto found = std::find(kNames.begin(), kNames.end(), std::string_view(kind));
  if (found == kNames.end()) return 0;
  return onesum::emulated::counts[static_cast<std::size_t>(found - kNames.begin())].load(
      std::memory_order_relaxed);
}

void emulated_gpu_reset() {
  onesum::emulated::forget_violations();
  onesum::emulated::forget_failures();
  for (auto& count : onesum::emulated::counts) count.store(0, std::memory_order_relaxed);
  for (int device = 0; device < onesum::emulated::settings().devices; ++device) {
    onesum::emulated::end_context(device, cudaSuccess);
  }
}
}
