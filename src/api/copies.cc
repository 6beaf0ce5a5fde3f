#include "api/copies.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <onesum/error.h>

#include "api/engines.h"
#include "api/tensor_state.h"
#include "base/log.h"
#include "engine/device.h"

namespace onesum::api {
namespace {

// Memory of the host goes through staging memory, so much at a time.
constexpr std::size_t kAtATime = std::size_t{4} << 20;

constexpr std::uint8_t kOneSource[] = {0};

// Queue 0 of a device, asked until it is done.
class Copier {
 public:
  explicit Copier(engine::QueuedEngine& engine) : engine_(engine), mark_(engine.make_mark()) {
    form_.input = form_.accumulator = form_.output = Element::kUInt8;
    form_.merges = kOneSource;
  }

  void wait_for(std::optional<void*> stream) {
    if (!stream) return;
    engine_.record(*stream, *mark_);
    finish();
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    // Sources are only read; addresses of both kinds are in one table.
    std::byte* const pointers[] = {to, const_cast<std::byte*>(from)};
    const engine::QueuedPiece piece{pointers, 0, bytes};
    engine_.queue(0).reduce({&form_, {}, {&piece, 1}});
    try {
      finish_queue();
    } catch (const Error&) {
      settle();
      throw;
    }
  }

 private:
  void finish_queue() {
    engine_.queue(0).record(*mark_);
    finish();
  }
  void finish() {
    while (!mark_->is_reached()) std::this_thread::yield();
  }
  // Memory is not given back while it may be copied.
  void settle() noexcept {
    try {
      finish_queue();
    } catch (const Error& error) {  // the device has failed, and does nothing any more
      log(LogLevel::kWarning, std::string("after a copy that failed: ") + error.what());
    }
  }

  engine::QueuedEngine& engine_;
  std::unique_ptr<engine::Mark> mark_;
  engine::ReduceForm form_;
};

class StagingMemory {
 public:
  StagingMemory(engine::QueuedEngine& engine, std::size_t bytes)
      : engine_(engine), bytes_(bytes), memory_(static_cast<std::byte*>(engine.allocate_staging(bytes))) {}
  ~StagingMemory() { engine_.release_staging(memory_, bytes_); }
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  std::byte* get() const { return memory_; }

 private:
  engine::QueuedEngine& engine_;
  std::size_t bytes_;
  std::byte* memory_;
};

// Through memory that the host and both devices work in; null: the host's own.
void copy_staged(engine::QueuedEngine* from_engine, const std::byte* from, engine::QueuedEngine* to_engine,
                 std::byte* to, std::size_t bytes) {
  engine::QueuedEngine& any = from_engine != nullptr ? *from_engine : *to_engine;
  const StagingMemory staging(any, std::min(bytes, kAtATime));
  for (std::size_t done = 0; done < bytes; done += kAtATime) {
    const std::size_t part = std::min(kAtATime, bytes - done);
    if (from_engine != nullptr) {
      Copier(*from_engine).copy(staging.get(), from + done, part);
    } else {
      std::memcpy(staging.get(), from + done, part);
    }
    if (to_engine != nullptr) {
      Copier(*to_engine).copy(to + done, staging.get(), part);
    } else {
      std::memcpy(to + done, staging.get(), part);
    }
  }
}

}  // namespace

void copy(const Tensor& from, const Tensor& to) {
  const Tensor::State& source = *from.state();
  const Tensor::State& target = *to.state();
  if (source.bytes == 0 || source.memory == target.memory) return;
  engine::QueuedEngine* const reader = queued_engine_of(source.device);
  engine::QueuedEngine* const writer = queued_engine_of(target.device);
  if (reader == nullptr && writer == nullptr) {
    std::memmove(target.memory, source.memory, source.bytes);
    return;
  }
  if (reader != nullptr) Copier(*reader).wait_for(source.stream);
  if (writer != nullptr) Copier(*writer).wait_for(target.stream);
  const auto* const begin = static_cast<const std::byte*>(source.memory);
  auto* const end = static_cast<std::byte*>(target.memory);
  if (reader != nullptr && writer != nullptr && writer->reaches(*reader)) {
    Copier(*writer).copy(end, begin, source.bytes);
  } else {
    copy_staged(reader, begin, writer, end, source.bytes);
  }
}

Tensor copy_on(const Tensor& tensor, const Device& device) {
  Tensor made = Tensor::empty(tensor.dtype(), tensor.shape(), device);
  copy(tensor, made);
  return made;
}

Tensor ready_on(const Tensor& tensor, const Device& device) {
  engine::QueuedEngine* const owner = queued_engine_of(tensor.device());
  if (owner != queued_engine_of(device)) return copy_on(tensor, device);
  if (owner != nullptr) Copier(*owner).wait_for(tensor.state()->stream);
  return tensor;
}

bool is_on_host(const Tensor& tensor) {
  const Device& device = tensor.device();
  return !device.type() || *device.type() == "CPU";
}

Tensor on_host(const Tensor& tensor) { return is_on_host(tensor) ? tensor : copy_on(tensor, "CPU:0"); }

IndexedSlices on_host(const IndexedSlices& slices) {
  return {on_host(slices.values), on_host(slices.indices), slices.dense_shape};
}

}  // namespace onesum::api
