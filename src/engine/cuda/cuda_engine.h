// One GPU.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/cuda/block_pool.h"
#include "engine/cuda/cuda_queue.h"
#include "engine/device.h"

namespace onesum::engine::cuda {

// Pinned memory, which all GPUs work in.
class Staging {
 public:
  explicit Staging(std::size_t pool_bytes);
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept { pool_.release(memory, bytes); }

 private:
  BlockPool pool_;
};

class CudaEngine final : public QueuedEngine {
 public:
  // `staging` outlives it.
  CudaEngine(int index, std::size_t pool_bytes, Staging& staging);

  std::string_view device_type() const noexcept override { return "GPU"; }
  std::string description() const override { return description_; }
  int index() const noexcept override { return index_; }

  void* allocate(std::size_t bytes) override;
  void release(void* memory, std::size_t bytes) noexcept override { pool_.release(memory, bytes); }
  void* allocate_staging(std::size_t bytes) override { return staging_.allocate(bytes); }
  void release_staging(void* memory, std::size_t bytes) noexcept override { staging_.release(memory, bytes); }

  bool reaches(const QueuedEngine& other) const noexcept override;
  void check_form(const ReduceForm& form) const override;

  Queue& queue(std::size_t number) override { return *queues_[number % kQueues]; }
  std::size_t queues() const noexcept override { return kQueues; }
  std::unique_ptr<Mark> make_mark() override { return std::make_unique<CudaMark>(index_); }

  void check() override;
  void record(void* stream, Mark& mark) override;
  void let_wait(void* stream, Mark& mark) override;

 private:
  static constexpr std::size_t kQueues = 4;

  bool enable_peer(int other) const noexcept;

  int index_;
  Staging& staging_;
  BlockPool pool_;
  std::array<std::unique_ptr<CudaQueue>, kQueues> queues_;
  std::string description_;
  mutable std::mutex peers_mutex_;
  mutable std::vector<std::optional<bool>> peers_;  // by index: whether it is reached, once asked
};

}  // namespace onesum::engine::cuda
