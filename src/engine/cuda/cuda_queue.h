// Streams and events as queues and marks.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/device.h"

namespace onesum::engine::cuda {

class CudaMark final : public Mark {
 public:
  explicit CudaMark(int device);
  ~CudaMark() override;

  bool is_reached() override;

  cudaEvent_t event() const noexcept { return event_; }
  void record_on(cudaStream_t stream);

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

class CudaQueue final : public Queue {
 public:
  // Never waits for the default stream.
  explicit CudaQueue(int device);
  ~CudaQueue() override;

  void reduce(const QueuedReduce& work) override;
  void copy_rows(const QueuedRows& work) override;
  void record(Mark& mark) override;
  void wait_for(Mark& mark) override;

  cudaStream_t stream() const noexcept { return stream_; }

 private:
  bool copy(const QueuedReduce& work);

  int device_;
  cudaStream_t stream_ = nullptr;
  unsigned multiprocessors_ = 0;
};

}  // namespace onesum::engine::cuda
