// Copies and fills of CUDA. Pageable memory is staged as CUDA does: its contents are taken at the call, and a
// call that writes it returns when it is written.
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

enum class Expected { kAny, kHost, kDevice };

// One end of a copy.
struct End {
  const void* address;
  std::size_t pitch;
  Expected expected;
  int device = -1;  // whose memory it must be; -1: any that the stream's device reaches
  Range range{};    // found by resolve, as is what follows
  std::shared_ptr<Allocation> allocation{};  // null: pageable memory
  std::byte* memory = nullptr;               // for the emulated GPU
};

struct Copy {
  const char* call;
  End to;
  End from;
  std::size_t width;
  std::size_t rows;
};

void copy_rows(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
               std::size_t width, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
  }
}

bool reaches(int device, int owner) {
  return device == owner ||
         world().devices[static_cast<std::size_t>(device)]->has_access[static_cast<std::size_t>(owner)];
}

cudaError_t check_owner(const End& end, int stream_device, const std::string& what) {
  const Allocation& allocation = *end.allocation;
  if (end.expected == Expected::kHost && allocation.kind == MemoryKind::kDevice) {
    return violate(cudaErrorInvalidValue, what + " is " + allocation.text() + ", expected host memory");
  }
  if (end.expected == Expected::kDevice && allocation.kind != MemoryKind::kDevice) {
    return violate(cudaErrorInvalidValue, what + " is " + allocation.text() + ", expected device memory");
  }
  if (!allocation.holds(end.range)) {
    return violate(cudaErrorInvalidValue, what + " is not inside " + allocation.text());
  }
  if (allocation.kind != MemoryKind::kDevice) return cudaSuccess;
  if (end.device >= 0 && end.device != allocation.device) {
    return violate(cudaErrorInvalidValue,
                   what + " is " + allocation.text() + ", expected device " + std::to_string(end.device));
  }
  if (end.device < 0 && stream_device >= 0 && !reaches(stream_device, allocation.device)) {
    return violate(cudaErrorInvalidValue, what + " is " + allocation.text() + ", which device " +
                                              std::to_string(stream_device) +
                                              " of the stream has no access to");
  }
  return cudaSuccess;
}

// `stream_device` -1: the host's own copy, which reaches every device.
cudaError_t resolve(const Copy& copy, End& end, const char* role, int stream_device) {
  end.range = Range::of_rows(end.address, copy.width, end.pitch, copy.rows);
  if (end.range.is_empty()) return cudaSuccess;
  end.allocation = world().memory.find(end.address);
  const std::string what = std::string(copy.call) + ": the " + role + " " + end.range.text();
  if (end.allocation != nullptr) {
    end.memory = end.allocation->alias_of(end.range.begin);
    return check_owner(end, stream_device, what);
  }
  const bool is_pageable = end.expected != Expected::kDevice && end.address != nullptr &&
                           world().memory.find_freed(end.address) == nullptr;
  if (!is_pageable) return violate(cudaErrorInvalidValue, what + " " + world().memory.obituary(end.address));
  end.memory = static_cast<std::byte*>(const_cast<void*>(end.address));
  return cudaSuccess;
}

cudaError_t resolve_both(Copy& copy, int stream_device) {
  if (copy.rows > 1 && (copy.to.pitch < copy.width || copy.from.pitch < copy.width)) {
    return violate(cudaErrorInvalidValue, std::string(copy.call) + ": rows are wider than their pitch");
  }
  if (const cudaError_t error = resolve(copy, copy.to, "destination", stream_device); error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = resolve(copy, copy.from, "source", stream_device); error != cudaSuccess) {
    return error;
  }
  if (copy.to.range.overlaps(copy.from.range)) {
    return violate(cudaErrorInvalidValue, std::string(copy.call) + ": source " + copy.from.range.text() +
                                              " and destination " + copy.to.range.text() + " overlap");
  }
  return cudaSuccess;
}

std::function<void()> work_of(const Copy& copy) {
  std::byte* const to = copy.to.memory;
  const std::byte* const from = copy.from.memory;
  if (copy.from.allocation != nullptr) {
    return [to, to_pitch = copy.to.pitch, from, from_pitch = copy.from.pitch, width = copy.width,
            rows = copy.rows] { copy_rows(to, to_pitch, from, from_pitch, width, rows); };
  }
  auto staged = std::make_shared<std::vector<std::byte>>(copy.width * copy.rows);
  copy_rows(staged->data(), copy.width, from, copy.from.pitch, copy.width, copy.rows);
  return [to, to_pitch = copy.to.pitch, staged, width = copy.width, rows = copy.rows] {
    copy_rows(to, to_pitch, staged->data(), width, width, rows);
  };
}

std::vector<Use> uses_of(const Copy& copy) {
  std::vector<Use> uses;
  if (copy.from.allocation != nullptr) uses.push_back({copy.from.range, false, copy.from.allocation});
  if (copy.to.allocation != nullptr) uses.push_back({copy.to.range, true, copy.to.allocation});
  return uses;
}

cudaError_t copy_async(Copy copy, cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  std::unique_lock lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, copy.call, stream); error != cudaSuccess) {
    return error;
  }
  const int device = stream->traits().device;
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  if (const cudaError_t error = resolve_both(copy, device); error != cudaSuccess) return error;
  const auto failure = take_failure(Failure::kCopy);
  if (failure && !is_sticky(*failure)) return static_cast<cudaError_t>(*failure);
  if (copy.to.range.is_empty()) return cudaSuccess;
  std::function<void()> work =
      failure ? [device, code = *failure] { end_context(device, code); } : work_of(copy);
  const auto operation = world().enqueue({Counted::kCopy, copy.call, stream, uses_of(copy), std::move(work)});
  if (copy.to.allocation != nullptr) return cudaSuccess;
  lock.unlock();
  stream->wait(operation->position);
  lock.lock();
  world().learn(operation->clock);
  return error_of(device);
}

std::pair<Expected, Expected> expected_of(cudaMemcpyKind kind) {  // of the destination, of the source
  switch (kind) {
    case cudaMemcpyHostToHost:
      return {Expected::kHost, Expected::kHost};
    case cudaMemcpyHostToDevice:
      return {Expected::kDevice, Expected::kHost};
    case cudaMemcpyDeviceToHost:
      return {Expected::kHost, Expected::kDevice};
    case cudaMemcpyDeviceToDevice:
      return {Expected::kDevice, Expected::kDevice};
    default:
      return {Expected::kAny, Expected::kAny};
  }
}

cudaError_t check_host_access(const Copy& copy) {
  for (const Use& use : uses_of(copy)) {
    if (const auto conflict =
            use.allocation->history.conflict(use.range, use.is_written, world().host_clock())) {
      violate(cudaSuccess, std::string("race, nothing orders these two: ") + conflict->text() + "; and " +
                               copy.call + (use.is_written ? " writes " : " reads ") + use.range.text());
    }
  }
  return cudaSuccess;
}

// As on the default stream: after everything that waits for that one.
cudaError_t copy_now(Copy copy) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  const int device = current_device();
  std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> waited_for;
  Clock learnt;
  std::unique_lock lock(world().mutex);
  for (const auto& [stream, position] : world().progress_of(device).streams) {
    if (!stream->traits().is_blocking) continue;
    waited_for.emplace_back(stream, position);
    learnt.join(stream->clock);
  }
  lock.unlock();
  for (const auto& [stream, position] : waited_for) stream->wait(position);
  lock.lock();
  world().learn(learnt);
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  if (const cudaError_t error = resolve_both(copy, -1); error != cudaSuccess) return error;
  if (const auto failure = take_failure(Failure::kCopy)) {
    if (is_sticky(*failure)) end_context(device, *failure);
    return static_cast<cudaError_t>(*failure);
  }
  count(Counted::kCopy);
  check_host_access(copy);
  copy_rows(copy.to.memory, copy.to.pitch, copy.from.memory, copy.from.pitch, copy.width, copy.rows);
  return cudaSuccess;
}

cudaError_t fill_async(void* address, int value, std::size_t bytes, cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  const std::lock_guard lock(world().mutex);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = world().find_stream(handle, "cudaMemsetAsync", stream);
      error != cudaSuccess) {
    return error;
  }
  const int device = stream->traits().device;
  if (const cudaError_t error = error_of(device); error != cudaSuccess) return error;
  End to{address, bytes, Expected::kAny};
  const Copy as_copy{"cudaMemsetAsync", to, to, bytes, 1};
  if (const cudaError_t error = resolve(as_copy, to, "destination", device); error != cudaSuccess)
    return error;
  if (bytes == 0) return cudaSuccess;
  if (to.allocation == nullptr) {
    return violate(cudaErrorInvalidValue, "cudaMemsetAsync of " + to.range.text() + ", which is not known");
  }
  world().enqueue({Counted::kFill,
                   "cudaMemsetAsync",
                   stream,
                   {{to.range, true, to.allocation}},
                   [memory = to.memory, value, bytes] { std::memset(memory, value, bytes); }});
  return cudaSuccess;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are CUDA's

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const auto [to_expected, from_expected] = expected_of(kind);
  return finish(copy_now({"cudaMemcpy", {to, bytes, to_expected}, {from, bytes, from_expected}, bytes, 1}));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const auto [to_expected, from_expected] = expected_of(kind);
  return finish(copy_async(
      {"cudaMemcpyAsync", {to, bytes, to_expected}, {from, bytes, from_expected}, bytes, 1}, stream));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  return finish(copy_async({"cudaMemcpyPeerAsync",
                            {to, bytes, Expected::kDevice, to_device},
                            {from, bytes, Expected::kDevice, from_device},
                            bytes,
                            1},
                           stream));
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  const auto [to_expected, from_expected] = expected_of(kind);
  return finish(copy_async(
      {"cudaMemcpy2DAsync", {to, to_pitch, to_expected}, {from, from_pitch, from_expected}, width, rows},
      stream));
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  return finish(fill_async(address, value, bytes, stream));
}
}
