// Events of CUDA.
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

bool is_complete(const Event& event) {
  return event.recording == nullptr || event.recording->stream->is_done(event.recording->operation->position);
}

cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle) {
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Event> event;
  if (const auto error = world().find_event(handle, "cudaEventRecord", event); error != cudaSuccess)
    return error;
  std::shared_ptr<Stream> stream;
  if (const auto error = world().find_stream(stream_handle, "cudaEventRecord", stream);
      error != cudaSuccess) {
    return error;
  }
  const int device = stream->traits().device;
  if (event->device != device) {
    return violate(cudaErrorInvalidResourceHandle, "cudaEventRecord of an event of device " +
                                                       std::to_string(event->device) +
                                                       " on a stream of device " + std::to_string(device));
  }
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  if (const auto failure = take_failure(Failure::kEventRecord)) return static_cast<cudaError_t>(*failure);
  auto recording = std::make_shared<Recording>();
  recording->stream = stream;
  recording->operation =
      world().enqueue({Counted::kEventRecord, "cudaEventRecord", stream, {}, [recording] {
                         recording->nanoseconds.store(nanoseconds_now(), std::memory_order_relaxed);
                       }});
  event->recording = recording;
  return cudaSuccess;
}

cudaError_t let_wait(cudaStream_t stream_handle, cudaEvent_t handle) {
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Event> event;
  if (const auto error = world().find_event(handle, "cudaStreamWaitEvent", event); error != cudaSuccess) {
    return error;
  }
  std::shared_ptr<Stream> stream;
  if (const auto error = world().find_stream(stream_handle, "cudaStreamWaitEvent", stream);
      error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = error_of(stream->traits().device); error != cudaSuccess) return error;
  World::check_launched(*stream, "cudaStreamWaitEvent");
  count(Counted::kEventWait);
  if (const std::shared_ptr<Recording> recording = event->recording) {
    world().enqueue_wait(stream, recording->stream, recording->operation->position,
                         recording->operation->clock);
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned int flags) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  constexpr unsigned int kFlags = cudaEventBlockingSync | cudaEventDisableTiming;
  if ((flags & ~kFlags) != 0) return finish(cudaErrorInvalidValue);
  const int device = current_device();
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return finish(error);
  if (const auto failure = take_failure(Failure::kEventCreate)) {
    return finish(static_cast<cudaError_t>(*failure));
  }
  const std::lock_guard lock(world().mutex);
  *handle = reinterpret_cast<cudaEvent_t>(world().next_handle());  // NOLINT(performance-no-int-to-ptr)
  world().events[*handle] =
      std::make_shared<Event>(Event{device, (flags & cudaEventDisableTiming) == 0, nullptr});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Event> event;
  if (const auto error = world().find_event(handle, "cudaEventDestroy", event); error != cudaSuccess) {
    return finish(error);
  }
  world().events.erase(handle);
  return finish(error_of(event->device));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  return finish(record(event, stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  if (flags != 0) return finish(cudaErrorInvalidValue);
  return finish(let_wait(stream, event));
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Event> event;
  if (const auto error = world().find_event(handle, "cudaEventQuery", event); error != cudaSuccess) {
    return finish(error);
  }
  const bool is_done = is_complete(*event);
  if (is_done && event->recording != nullptr) world().learn(event->recording->operation->clock);
  if (const cudaError_t error = error_of(event->device); error != cudaSuccess) return finish(error);
  return finish(is_done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  std::unique_lock lock(world().mutex);
  std::shared_ptr<Event> event;
  if (const auto error = world().find_event(handle, "cudaEventSynchronize", event); error != cudaSuccess) {
    return finish(error);
  }
  const std::shared_ptr<Recording> recording = event->recording;
  if (recording == nullptr) return finish(error_of(event->device));
  lock.unlock();
  recording->stream->wait(recording->operation->position);
  lock.lock();
  world().learn(recording->operation->clock);
  return finish(error_of(event->device));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return finish(error);
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Event> first;
  std::shared_ptr<Event> second;
  if (const auto error = world().find_event(from, "cudaEventElapsedTime", first); error != cudaSuccess) {
    return finish(error);
  }
  if (const auto error = world().find_event(to, "cudaEventElapsedTime", second); error != cudaSuccess) {
    return finish(error);
  }
  if (!first->has_timing || !second->has_timing || first->recording == nullptr ||
      second->recording == nullptr) {
    return finish(cudaErrorInvalidResourceHandle);
  }
  if (!is_complete(*first) || !is_complete(*second)) return finish(cudaErrorNotReady);
  const std::int64_t elapsed = second->recording->nanoseconds.load(std::memory_order_relaxed) -
                               first->recording->nanoseconds.load(std::memory_order_relaxed);
  *milliseconds = static_cast<float>(static_cast<double>(elapsed) * 1e-6);
  return cudaSuccess;
}
}
