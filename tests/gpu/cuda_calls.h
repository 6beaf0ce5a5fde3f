// What a caller of the library does with CUDA by itself: streams, copies and host functions on them, by the
// library that LD_LIBRARY_PATH leads to.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

#include <onesum/tensor.h>

namespace onesum::testing {

enum class StreamKind { kOwn, kDefault };

// A stream on a GPU. Destroyed when everything on it is done.
class CallerStream {
 public:
  explicit CallerStream(int device, StreamKind kind = StreamKind::kOwn);
  ~CallerStream();
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;

  void* get() const { return stream_; }

  void copy(void* to, const void* from, std::size_t bytes);
  // Runs on the stream, when its turn comes; must live until then.
  void call(std::function<void()>& function);
  void synchronize();
  bool is_done();

 private:
  int device_;
  cudaStream_t stream_ = nullptr;  // the default one
};

// Memory of the caller's on a GPU, and pinned memory that holds what is copied there and back.
class CallerMemory {
 public:
  CallerMemory(int device, std::span<const float> contents);
  ~CallerMemory();
  CallerMemory(const CallerMemory&) = delete;
  CallerMemory& operator=(const CallerMemory&) = delete;

  Tensor tensor(const CallerStream& stream) const;
  void* device_memory() const { return memory_; }
  void fill(CallerStream& stream);  // from pinned memory
  void read(CallerStream& stream);  // into pinned memory
  std::vector<float> contents() const { return {pinned_, pinned_ + count_}; }

 private:
  int device_;
  std::size_t count_;
  void* memory_ = nullptr;
  float* pinned_ = nullptr;
};

}  // namespace onesum::testing
