// The GPUs of this process in a group: one communicator of NCCL for each, none of which blocks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cuda/cuda_engine.h"
#include "engine/native.h"
#include "engine/nccl/launch_turn.h"
#include "engine/nccl/nccl_library.h"

namespace onesum::engine::nccl {

class NcclCommunicator final : public Communicator {
 public:
  struct Local {
    cuda::CudaEngine* engine = nullptr;
    int rank = 0;
  };

  // Of a group of `size` devices.
  NcclCommunicator(std::shared_ptr<const Library> library, std::shared_ptr<LaunchTurn> turn, int size,
                   std::vector<Local> locals);
  // Lets what was given come to its end for a second, then aborts it. Returns after two seconds at most.
  ~NcclCommunicator() override;

  // Before anything else.
  void start(const NativeId& id);

  std::size_t devices() const noexcept override { return locals_.size(); }
  int device(std::size_t number) const noexcept override { return locals_[number].engine->index(); }
  Queue& queue(std::size_t device) noexcept override { return *queues_[device]; }
  bool is_ready() override;
  bool take_turn() override { return is_ready() && turn_->take(this); }
  void give(const NativeWork& work) override;
  void abort() noexcept override;
  // Relaxed everywhere: whoever needs the order takes the mutex.
  bool is_aborted() const noexcept override { return is_aborted_.load(std::memory_order_relaxed); }
  void rejoin(const NativeId& id) override { start(id); }

 private:
  // What the library gave us, by device. Shared with a thread that ends it, which may take longer than we
  // wait.
  struct Handles {
    std::shared_ptr<const Library> library;
    std::vector<ncclComm_t> comms;
    std::string name;  // "NCCL 2.28.9 on GPU:0, GPU:1"

    ncclResult_t state(std::size_t device) const noexcept;
    bool are_all(ncclResult_t state) const noexcept;
    void abort() noexcept;
    void finish() noexcept;
  };
  class GroupOfCalls;

  static void end_in_time(const std::shared_ptr<Handles>& handles, void (Handles::*end)() noexcept) noexcept;

  std::shared_ptr<Handles> make_handles() const;
  void require_usable() const;
  ncclResult_t call(const NativeWork& work, std::size_t piece, std::size_t device) const;
  void require(ncclResult_t result, std::size_t device, const char* doing);
  [[noreturn]] void fail(ncclResult_t result, const std::string& reason);
  [[noreturn]] void throw_failure() const;

  const std::shared_ptr<const Library> library_;
  const std::shared_ptr<LaunchTurn> turn_;
  const int size_;
  const std::vector<Local> locals_;
  std::vector<std::unique_ptr<cuda::CudaQueue>> queues_;  // by device
  // Held while the library is called, except for its end.
  std::mutex mutex_;
  std::shared_ptr<Handles> handles_;  // null: not started, or aborted
  std::string failure_;               // empty: none
  bool has_lost_peer_ = false;        // which is the failure
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace onesum::engine::nccl
