// Streams of CUDA, and host functions on them.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

constexpr int kGreatestPriority = -5;

cudaError_t create(cudaStream_t* handle, unsigned int flags, int priority) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  if ((flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
  const int device = current_device();
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  if (const auto failure = take_failure(Failure::kStreamCreate)) return static_cast<cudaError_t>(*failure);
  const std::lock_guard lock(world().mutex);
  *handle = reinterpret_cast<cudaStream_t>(world().next_handle());  // NOLINT(performance-no-int-to-ptr)
  world().streams[*handle] =
      world().create_stream(device, (flags & static_cast<unsigned>(cudaStreamNonBlocking)) == 0, priority);
  return cudaSuccess;
}

cudaError_t launch_host_function(cudaStream_t handle, cudaHostFn_t function, void* data) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaLaunchHostFunc", stream);
      error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = error_of(stream->traits().device); error != cudaSuccess) return error;
  // Whoever the function tells may take everything before it for complete.
  auto before = std::make_shared<Clock>();
  const auto operation =
      world().enqueue({Counted::kHostFunction, "cudaLaunchHostFunc", stream, {}, [function, data, before] {
                         {
                           const std::lock_guard inner(world().mutex);
                           world().learn(*before);
                         }
                         is_in_host_function() = true;
                         function(data);
                         is_in_host_function() = false;
                       }});
  *before = operation->clock;
  return cudaSuccess;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned int flags) {
  return finish(create(handle, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned int flags, int priority) {
  return finish(create(handle, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  if (handle == nullptr) return finish(cudaErrorInvalidResourceHandle);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaStreamDestroy", stream);
      error != cudaSuccess) {
    return finish(error);
  }
  stream->close();
  world().streams.erase(handle);
  std::erase_if(world().destroyed,
                [](const std::shared_ptr<Stream>& other) { return other->is_done(other->enqueued); });
  world().destroyed.push_back(stream);
  return finish(error_of(stream->traits().device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaStreamQuery", stream);
      error != cudaSuccess) {
    return finish(error);
  }
  World::check_launched(*stream, "cudaStreamQuery");
  const bool is_done = stream->is_done(stream->enqueued);
  if (is_done) world().learn(stream->clock);
  if (const cudaError_t error = error_of(stream->traits().device); error != cudaSuccess) return finish(error);
  return finish(is_done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  std::unique_lock lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaStreamSynchronize", stream);
      error != cudaSuccess) {
    return finish(error);
  }
  World::check_launched(*stream, "cudaStreamSynchronize");
  const Clock clock = stream->clock;
  const std::uint64_t position = stream->enqueued;
  lock.unlock();
  stream->wait(position);
  lock.lock();
  world().learn(clock);
  return finish(error_of(stream->traits().device));
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaStreamGetDevice", stream);
      error != cudaSuccess) {
    return finish(error);
  }
  *device = stream->traits().device;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return finish(launch_host_function(handle, function, data));
}
}
