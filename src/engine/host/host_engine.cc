#include "engine/host/host_engine.h"

#include <string>

#include "engine/host/crew.h"
#include "engine/host/machine.h"
#include "engine/host/memory_pool.h"
#include "engine/host/reduce_kernels.h"
#include "engine/host/simd_kernels.h"

namespace onesum::engine {
namespace {

constexpr std::size_t kSegmentBytes = std::size_t{256} << 10;
constexpr std::size_t kStreamingBytes = std::size_t{8} << 20;

class HostEngine final : public DeviceEngine {
 public:
  HostEngine(unsigned threads, unsigned cores, std::size_t pool_limit_bytes)
      : pool_(pool_limit_bytes), crew_(threads, cores) {}

  std::string_view device_type() const noexcept override { return "CPU"; }

  void* allocate(std::size_t bytes) override { return pool_.allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { pool_.release(memory, bytes); }

  Kernel reduce_kernel(const ReduceForm& form) const override { return host::find_reduce_kernel(form); }
  bool prefers_streaming(std::size_t bytes_written) const noexcept override {
    return bytes_written >= kStreamingBytes;
  }

  void run_segments(std::uint32_t count, SegmentTask task, void* context) noexcept override {
    crew_.run(count, task, context);
  }
  std::size_t segment_bytes() const noexcept override { return kSegmentBytes; }
  unsigned threads() const noexcept override { return crew_.threads(); }

  std::string description() const override {
    const unsigned count = threads();
    return host::simd_target() + " kernels, " + std::to_string(count) + (count == 1 ? " thread" : " threads");
  }

 private:
  host::MemoryPool pool_;
  host::Crew crew_;
};

}  // namespace

std::unique_ptr<DeviceEngine> make_host_engine(const HostOptions& options) {
  const unsigned cores = host::available_cores();
  const unsigned threads = options.threads == 0 ? cores : options.threads;
  return std::make_unique<HostEngine>(threads, cores,
                                      options.pool_limit_bytes.value_or(host::physical_memory_bytes() / 4));
}

}  // namespace onesum::engine
