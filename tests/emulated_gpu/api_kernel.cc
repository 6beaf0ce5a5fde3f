// Kernels of CUDA: what code compiled by nvcc registers, and launches, which run a twin on the host.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/kernel_twin.h"
#include "emulated_gpu/violations.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

constexpr unsigned kMostThreads = 1024;

struct Kernel {
  std::string name;
};

// Filled by constructors of the program, before anything else here is used.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> by_function;
  std::vector<void*> abandoned;  // arguments of launches that were never run: nobody may free them
};

Registry& registry() {
  static Registry& result = *new Registry;
  return result;
}

// By the host function's address, or by the handle that __cudaGetKernel has given for it.
const Kernel* find_kernel(const void* function) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().by_function.find(function);
  if (found != registry().by_function.end()) return found->second.get();
  for (const auto& [host_function, kernel] : registry().by_function) {
    if (kernel.get() == function) return kernel.get();
  }
  return nullptr;
}

const KernelTwin* find_twin(const std::string& name) {
  for (const KernelTwin& twin : kernel_twins()) {
    if (name == twin.name) return &twin;
  }
  return nullptr;
}

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

std::vector<Configuration>& pushed_configurations() {
  thread_local std::vector<Configuration> result;
  return result;
}

// The memory of the launch that the thread runs.
std::vector<Use>& uses_of_launch() {
  thread_local std::vector<Use> result;
  return result;
}

void* translate(const void* address) {
  if (address == nullptr) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Allocation* ending_there = nullptr;  // allocations may lie side by side
  for (const Use& use : uses_of_launch()) {
    const std::uintptr_t offset = at - use.allocation->begin;
    if (offset < use.allocation->bytes) return use.allocation->alias_of(at);
    if (offset == use.allocation->bytes) ending_there = use.allocation.get();
  }
  if (ending_there != nullptr) return ending_there->alias_of(at);
  report_violation("a kernel's twin uses " + hex(address) + ", which is not in the kernel's footprint");
  return nullptr;
}

// Memory that every later kernel would have failed on is an asynchronous error of the device.
cudaError_t find_uses(const KernelTwin& twin, void** args, int device, std::vector<Use>& uses) {
  std::vector<Footprint> footprints;
  twin.footprint(args, footprints);
  for (const Footprint& footprint : footprints) {
    if (footprint.bytes == 0) continue;
    const Range range = Range::of(footprint.address, footprint.bytes);
    const std::string what = std::string("kernel ") + twin.name + " uses " + range.text();
    const std::shared_ptr<Allocation> allocation = world().memory.find(footprint.address);
    if (allocation == nullptr) {
      return violate(cudaErrorIllegalAddress, what + ", which " + world().memory.obituary(footprint.address));
    }
    if (!allocation->holds(range)) {
      return violate(cudaErrorIllegalAddress, what + ", which is not inside " + allocation->text());
    }
    const auto& access = world().devices[static_cast<std::size_t>(device)]->has_access;
    if (allocation->kind == MemoryKind::kDevice && allocation->device != device &&
        !access[static_cast<std::size_t>(allocation->device)]) {
      return violate(cudaErrorIllegalAddress, what + ", to which device " + std::to_string(device) +
                                                  " has no access: " + allocation->text());
    }
    uses.push_back({range, footprint.is_written, allocation});
  }
  return cudaSuccess;
}

// Runs the twin once, or keeps the arguments that it would have freed.
class Launch {
 public:
  Launch(const KernelTwin& twin, void** args, const Configuration& how, std::vector<Use> uses)
      : twin_(twin),
        arguments_(twin.copy_arguments(args)),
        blocks_(how.grid.x * how.grid.y * how.grid.z),
        threads_(how.block.x * how.block.y * how.block.z),
        uses_(std::move(uses)) {}
  ~Launch() {
    if (arguments_ == nullptr) return;
    const std::lock_guard lock(registry().mutex);
    registry().abandoned.push_back(arguments_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  void run() {
    uses_of_launch() = std::move(uses_);
    twin_.run(std::exchange(arguments_, nullptr), blocks_, threads_, translate);
    uses_of_launch().clear();
  }

 private:
  const KernelTwin& twin_;
  void* arguments_;
  unsigned blocks_;
  unsigned threads_;
  std::vector<Use> uses_;
};

cudaError_t check_configuration(const Configuration& how, const std::string& name) {
  const std::uint64_t blocks = std::uint64_t{how.grid.x} * how.grid.y * how.grid.z;
  const std::uint64_t threads = std::uint64_t{how.block.x} * how.block.y * how.block.z;
  if (blocks > 0 && blocks <= 0x7fffffff && threads > 0 && threads <= kMostThreads) return cudaSuccess;
  return violate(cudaErrorInvalidConfiguration, "launch of " + name + " with " + std::to_string(blocks) +
                                                    " blocks of " + std::to_string(threads) +
                                                    " threads, expected 1 to 1024 threads");
}

cudaError_t launch(const void* function, void** args, const Configuration& how) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  const Kernel* const kernel = find_kernel(function);
  if (kernel == nullptr) {
    return violate(cudaErrorInvalidDeviceFunction,
                   "launch of " + hex(function) + ", which nothing has registered");
  }
  const KernelTwin* const twin = find_twin(kernel->name);
  if (twin == nullptr) {
    return violate(cudaErrorInvalidDeviceFunction, "launch of " + kernel->name + ", which has no twin");
  }
  if (const cudaError_t error = check_configuration(how, kernel->name); error != cudaSuccess) return error;
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Stream> stream;
  const std::string what = "launch of " + kernel->name;
  if (const cudaError_t error = world().find_stream(how.stream, what.c_str(), stream); error != cudaSuccess) {
    return error;
  }
  const int device = stream->traits().device;
  if (device != current_device()) {
    return violate(cudaErrorInvalidResourceHandle, what + " on a stream of device " + std::to_string(device) +
                                                       " while device " + std::to_string(current_device()) +
                                                       " is current");
  }
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  std::vector<Use> uses;
  const cudaError_t memory_error = find_uses(*twin, args, device, uses);
  auto failure = take_failure(Failure::kLaunch);
  if (memory_error != cudaSuccess) failure = memory_error;
  if (failure && !is_sticky(*failure)) return static_cast<cudaError_t>(*failure);
  if (failure) {
    world().enqueue(
        {Counted::kLaunch, what, stream, uses, [device, code = *failure] { end_context(device, code); }});
    return cudaSuccess;
  }
  auto run = std::make_shared<Launch>(*twin, args, how, uses);
  world().enqueue({Counted::kLaunch, what, stream, uses, [run] { run->run(); }});
  return cudaSuccess;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

// Declared by what nvcc generates only.
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3* thread_id, uint3* block_id,
                            dim3* block, dim3* grid, int* warp_size);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int is_external,
                       std::size_t bytes, int is_constant, int is_global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               std::size_t shared_bytes, cudaStream_t stream);

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle) { delete handle; }

void __cudaRegisterFunction(void** /*handle*/, const char* host_function, char* /*device_function*/,
                            const char* device_name, int /*thread_limit*/, uint3* /*thread_id*/,
                            uint3* /*block_id*/, dim3* /*block*/, dim3* /*grid*/, int* /*warp_size*/) {
  const std::lock_guard lock(registry().mutex);
  registry().by_function[host_function] = std::make_unique<Kernel>(Kernel{device_name});
}

void __cudaRegisterVar(void** /*handle*/, char* /*host*/, char* /*device*/, const char* /*name*/,
                       int /*is_external*/, std::size_t /*bytes*/, int /*is_constant*/, int /*is_global*/) {}

char __cudaInitModule(void** /*handle*/) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream) {
  pushed_configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  std::vector<Configuration>& pushed = pushed_configurations();
  if (pushed.empty()) return finish(cudaErrorMissingConfiguration);
  *grid = pushed.back().grid;
  *block = pushed.back().block;
  *shared_bytes = pushed.back().shared_bytes;
  *static_cast<cudaStream_t*>(stream) = pushed.back().stream;
  pushed.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  const Kernel* const found = find_kernel(function);
  if (found == nullptr) return finish(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<Kernel*>(found));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return finish(launch(kernel, args, {grid, block, shared_bytes, stream}));
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return finish(launch(function, args, {grid, block, shared_bytes, stream}));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* function, void** args) {
  return finish(launch(function, args, {how->gridDim, how->blockDim, how->dynamicSmemBytes, how->stream}));
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  if (find_kernel(function) == nullptr) return finish(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(kMostThreads);
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
}
