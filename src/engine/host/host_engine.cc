#include "engine/host/host_engine.h"

#include <algorithm>
#include <string>

#include "base/machine.h"
#include "engine/host/crew.h"
#include "engine/host/fp_environment.h"
#include "engine/host/memory_pool.h"
#include "engine/host/reduce_kernels.h"
#include "engine/host/simd_kernels.h"

namespace onesum::engine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// In-place and out-of-place sums with two threads take the same time, within 3 %, for segments of 64 KiB to 2
// MiB; with 32 KiB claiming costs 5 to 10 %. Small segments share the work of small calls better.
constexpr std::size_t kSegmentBytes = kMiB / 4;

// Stores that bypass the caches save reading the destination's lines, and cost whoever reads the result next.
// Measured on an Emerald Rapids VM with two cores (2 MiB of L2 each, 260 MiB of L3 reported), sums of two and
// of four arrays into another, one and two threads, streaming against plain, by bytes written:
//   sum alone               slower below 1 MiB; then 0.80 to 0.92 of the time, 0.6 to 0.8 from 64 MiB on
//   sum, then result used   1.2 to 4 times the time below 8 MiB; 1.06 to 1.28 up to 32 MiB; 0.8 to 1.1 at 64
//   MiB;
//                           0.74 to 0.89 at 128 MiB
// So results that could stay in the last-level cache are left there: those up to half of it, but a share of a
// large cache is not ours alone.
std::size_t streaming_threshold() noexcept {
  const std::size_t cache = last_level_cache_bytes();
  return cache == 0 ? 16 * kMiB : std::clamp(cache / 2, 8 * kMiB, 32 * kMiB);
}

class HostEngine final : public ThreadedEngine {
 public:
  HostEngine(unsigned threads, unsigned cores, std::size_t pool_limit_bytes)
      : pool_(pool_limit_bytes), crew_(threads, cores) {}

  std::string_view device_type() const noexcept override { return "CPU"; }

  void* allocate(std::size_t bytes) override { return pool_.allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { pool_.release(memory, bytes); }

  Kernel reduce_kernel(const ReduceForm& form) const override { return host::find_reduce_kernel(form); }
  bool prefers_streaming(std::size_t bytes_written) const noexcept override {
    return bytes_written >= streaming_bytes_;
  }

  void run_segments(std::uint32_t count, SegmentTask task, void* context) noexcept override {
    if (count != 1) return crew_.run(count, task, context);
    const host::FpEnvironment standard;
    task(context, 0);
  }
  std::size_t segment_bytes() const noexcept override { return kSegmentBytes; }
  unsigned threads() const noexcept override { return crew_.threads(); }

  std::string description() const override {
    const unsigned count = threads();
    return host::simd_target() + " kernels, " + std::to_string(count) + (count == 1 ? " thread" : " threads");
  }

 private:
  const std::size_t streaming_bytes_ = streaming_threshold();
  host::MemoryPool pool_;
  host::Crew crew_;
};

}  // namespace

std::unique_ptr<ThreadedEngine> make_host_engine(const HostOptions& options) {
  const unsigned cores = available_cores();
  const unsigned threads = options.threads == 0 ? cores : options.threads;
  return std::make_unique<HostEngine>(threads, cores,
                                      options.pool_limit_bytes.value_or(physical_memory_bytes() / 4));
}

}  // namespace onesum::engine
