// Everything that exists on the emulated GPUs of this process, under one lock, and how operations are
// enqueued.
//
// The functions of CUDA and NCCL (api_*.cc, nccl.cc) take the lock, look things up, and enqueue. They never
// wait for a stream while they hold it. The world is never destroyed: threads of streams outlive static
// objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "emulated_gpu/clock.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/operation.h"
#include "emulated_gpu/statistics.h"
#include "emulated_gpu/stream.h"

namespace onesum::emulated {

struct Device {
  std::atomic<int> error =
      cudaSuccess;               // that ended its context; set by streams. Relaxed: it guards nothing.
  std::vector<bool> has_access;  // to whose memory: as enabled
  std::shared_ptr<Stream> default_stream;
};

// What an event holds since it was recorded.
struct Recording {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<const Operation> operation;
  std::atomic<std::int64_t> nanoseconds = 0;  // when it was reached. Relaxed: read after the stream is done.
};

struct Event {
  int device;
  bool has_timing;
  std::shared_ptr<Recording> recording;  // null: never recorded, which counts as complete
};

struct Use {
  Range range;
  bool is_written;
  std::shared_ptr<Allocation> allocation;
};

struct Request {
  Counted kind;
  std::string what;
  std::shared_ptr<Stream> stream;
  std::vector<Use> uses;
  std::function<void()> run;
};

class World {
 public:
  World();

  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  Memory memory;
  std::unordered_map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Stream>> destroyed;  // that may still have work
  std::unordered_map<cudaEvent_t, std::shared_ptr<Event>> events;

  // All below need the lock.

  // What the calling host thread may take for complete; with everything that any thread has learnt.
  Clock& host_clock();
  void learn(const Clock& clock);

  // How far all streams of a device are enqueued.
  struct Progress {
    std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> streams;
    Clock clock;
    void wait() const;  // without the lock
  };
  Progress progress_of(int device) const;

  std::shared_ptr<Stream> create_stream(int device, bool is_blocking, int priority);
  // Reports a stream that is not there, or the default stream where it is not allowed.
  cudaError_t find_stream(cudaStream_t handle, const char* call, std::shared_ptr<Stream>& found);
  cudaError_t find_event(cudaEvent_t handle, const char* call, std::shared_ptr<Event>& found);

  // Reports a call on a stream on which a collective of the same thread is not known to be enqueued yet: the
  // thread counts on an order that is none.
  static void check_launched(const Stream& stream, const std::string& call);

  // Reports that another thread's collective is not known to be enqueued yet on a stream of the same device:
  // of two at once, each may have a device that the other waits for.
  void check_turn(int device, const std::string& call) const;

  // Reports what is unordered.
  std::shared_ptr<const Operation> enqueue(Request request);
  // Lets `stream` go on only when `other` has come to `position`.
  void enqueue_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Stream>& other,
                    std::uint64_t position, const Clock& clock);

  std::uintptr_t next_handle();

 private:
  void order_with_default_stream(const std::shared_ptr<Stream>& stream);
  static std::shared_ptr<const Operation> append(Stream& stream, std::string what);
  void check(const Use& use, const std::shared_ptr<const Operation>& operation, const Clock& before);

  Clock process_clock_;
  std::uint32_t streams_made_ = 0;
  std::uintptr_t handles_made_ = 0;
};

World& world();

// cudaSuccess if there are a driver and devices.
cudaError_t usable();
int& current_device();
// The calling thread's last error; returns it.
cudaError_t finish(cudaError_t error);
// Reports and returns it.
cudaError_t violate(cudaError_t error, const std::string& text);
inline cudaError_t error_of(int device) {
  return static_cast<cudaError_t>(
      world().devices[static_cast<std::size_t>(device)]->error.load(std::memory_order_relaxed));
}
inline void end_context(int device, int error) {
  world().devices[static_cast<std::size_t>(device)]->error.store(error, std::memory_order_relaxed);
}
// Whether the thread runs a host function of a stream, which must not call CUDA.
bool& is_in_host_function();

}  // namespace onesum::emulated
