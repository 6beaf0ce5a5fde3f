#include "emulated_gpu/world.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "emulated_gpu/fault.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/violations.h"

#ifdef __SANITIZE_THREAD__
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace onesum::emulated {
namespace {

const Clock& nothing() {
  static const Clock& result = *new Clock;
  return result;
}

// Whether two streams race is said by the race detector: where races are counted only, ThreadSanitizer would
// say it again, and end the process.
void ignore_accesses([[maybe_unused]] bool from_now_on) {
#ifdef __SANITIZE_THREAD__
  if (from_now_on) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  } else {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
#endif
}

bool is_collective(Counted kind) {
  return kind == Counted::kAllReduce || kind == Counted::kReduce || kind == Counted::kBroadcast;
}

}  // namespace

World& world() {
  static World& result = *new World;
  return result;
}

World::World() {
  for (int device = 0; device < settings().devices; ++device) {
    devices.push_back(std::make_unique<Device>());
    devices.back()->has_access.resize(static_cast<std::size_t>(settings().devices));
  }
  install_fault_handler();
}

cudaError_t usable() {
  if (!settings().has_driver) return cudaErrorInsufficientDriver;
  if (settings().devices == 0) return cudaErrorNoDevice;
  if (is_in_host_function()) return violate(cudaErrorNotPermitted, "a host function of a stream calls CUDA");
  return cudaSuccess;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

bool& is_in_host_function() {
  thread_local bool result = false;
  return result;
}

cudaError_t violate(cudaError_t error, const std::string& text) {
  report_violation(text + ", called from " + Place::of_caller().text());
  return error;
}

Clock& World::host_clock() {
  if (!settings().host_is_thread) return process_clock_;
  thread_local Clock clock;
  return clock;
}

void World::learn(const Clock& clock) {
  if (settings().host_is_thread) host_clock().join(clock);
  if (process_clock_.join(clock)) memory.open_pages(process_clock_);
}

World::Progress World::progress_of(int device) const {
  Progress result;
  const auto add = [&](const std::shared_ptr<Stream>& stream) {
    if (stream == nullptr || stream->traits().device != device) return;
    result.streams.emplace_back(stream, stream->enqueued);
    result.clock.join(stream->clock);
  };
  for (const auto& [handle, stream] : streams) add(stream);
  for (const std::shared_ptr<Stream>& stream : destroyed) add(stream);
  add(devices[static_cast<std::size_t>(device)]->default_stream);
  return result;
}

void World::Progress::wait() const {
  for (const auto& [stream, position] : streams) stream->wait(position);
}

std::uintptr_t World::next_handle() { return 0x100000 + 16 * ++handles_made_; }

std::shared_ptr<Stream> World::create_stream(int device, bool is_blocking, int priority) {
  return Stream::start(
      {.number = ++streams_made_, .device = device, .is_blocking = is_blocking, .priority = priority});
}

cudaError_t World::find_stream(cudaStream_t handle, const char* call, std::shared_ptr<Stream>& found) {
  if (handle == cudaStreamPerThread) {
    return violate(cudaErrorInvalidResourceHandle,
                   std::string(call) + " on the thread's default stream, which is not emulated");
  }
  if (handle == nullptr || handle == cudaStreamLegacy) {
    if (!settings().allows_default_stream) {
      return violate(cudaErrorInvalidResourceHandle,
                     std::string(call) + " on the default stream, which orders all others");
    }
    const int device = current_device();
    std::shared_ptr<Stream>& stream = devices[static_cast<std::size_t>(device)]->default_stream;
    if (stream == nullptr) stream = create_stream(device, true, 0);
    found = stream;
    return cudaSuccess;
  }
  const auto entry = streams.find(handle);
  if (entry == streams.end()) {
    return violate(cudaErrorInvalidResourceHandle, std::string(call) + " with stream handle " + hex(handle) +
                                                       ", which is destroyed or unknown");
  }
  found = entry->second;
  return cudaSuccess;
}

cudaError_t World::find_event(cudaEvent_t handle, const char* call, std::shared_ptr<Event>& found) {
  const auto entry = events.find(handle);
  if (entry == events.end()) {
    return violate(cudaErrorInvalidResourceHandle, std::string(call) + " with event handle " + hex(handle) +
                                                       ", which is destroyed or unknown");
  }
  found = entry->second;
  return cudaSuccess;
}

std::shared_ptr<const Operation> World::append(Stream& stream, std::string what) {
  auto operation = std::make_shared<Operation>();
  operation->what = std::move(what);
  operation->device = stream.traits().device;
  operation->stream = stream.traits().number;
  operation->position = ++stream.enqueued;
  operation->where = Place::of_caller();
  stream.clock.advance(operation->stream, operation->position);
  operation->clock = stream.clock;
  return operation;
}

void World::enqueue_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Stream>& other,
                         std::uint64_t position, const Clock& clock) {
  stream->clock.join(clock);
  if (stream == other || other->is_done(position)) return;
  append(*stream, "wait");
  stream->push([other, position] { other->wait(position); });
}

void World::order_with_default_stream(const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<Stream>& by_default =
      devices[static_cast<std::size_t>(stream->traits().device)]->default_stream;
  if (by_default == nullptr || !stream->traits().is_blocking) return;
  if (stream != by_default) {
    if (std::exchange(stream->fenced_with, by_default->enqueued) != by_default->enqueued) {
      enqueue_wait(stream, by_default, by_default->enqueued, by_default->clock);
    }
    return;
  }
  for (const auto& [handle, other] : streams) {
    if (other->traits().is_blocking && other->traits().device == stream->traits().device) {
      enqueue_wait(stream, other, other->enqueued, other->clock);
    }
  }
}

void World::check(const Use& use, const std::shared_ptr<const Operation>& operation, const Clock& before) {
  const Access access{use.range, use.is_written, operation};
  const Clock& known = settings().host_is_thread ? nothing() : process_clock_;
  if (const auto conflict = use.allocation->history.add(access, before, known)) {
    report_violation("race, nothing orders these two: " + conflict->text() + "; and " + access.text());
  }
  if (use.allocation->pages) use.allocation->pages->close(access);
}

void World::check_launched(const Stream& stream, const std::string& call) {
  if (std::ranges::find(stream.launching, std::this_thread::get_id()) == stream.launching.end()) return;
  report_violation(
      call + " on stream " + std::to_string(stream.traits().number) +
      " before ncclCommGetAsyncError has said that the collective before it is enqueued, called from " +
      Place::of_caller().text());
}

void World::check_turn(int device, const std::string& call) const {
  const auto is_others = [](std::thread::id thread) { return thread != std::this_thread::get_id(); };
  for (const auto& [handle, stream] : streams) {
    if (stream->traits().device != device || std::ranges::none_of(stream->launching, is_others)) continue;
    report_violation(call + " while another thread's collective is being enqueued on device " +
                     std::to_string(device) + ", called from " + Place::of_caller().text());
  }
}

std::shared_ptr<const Operation> World::enqueue(Request request) {
  const std::shared_ptr<Stream> stream = request.stream;
  if (!is_collective(request.kind)) check_launched(*stream, request.what);
  count(request.kind);
  order_with_default_stream(stream);
  stream->clock.join(host_clock());
  const Clock before = stream->clock;
  const std::shared_ptr<const Operation> operation = append(*stream, std::move(request.what));
  for (const Use& use : request.uses) check(use, operation, before);
  // The uses keep their memory until it ran, whatever the program frees meanwhile.
  stream->push([run = std::move(request.run), uses = std::move(request.uses), device = operation->device,
                is_gpus = request.kind != Counted::kHostFunction] {
    if (error_of(device) != cudaSuccess) return;
    if (is_gpus) ignore_accesses(true);
    run();
    if (is_gpus) ignore_accesses(false);
  });
  return operation;
}

}  // namespace onesum::emulated
