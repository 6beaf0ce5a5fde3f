// The c10d backend "onesum": what torch.distributed calls for a process group's CPU tensors.
//
// Collectives of a group run one after the other, in call order, on one queue; messages on a queue for each
// other member, direction and tag. What c10d promises of a backend holds: a call returns a Work, whose
// tensors must stay as they are until it is done. Threads: any, but calls that members make at the same time
// have no order.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <onesum/onesum.h>

#include "groups.h"
#include "queue.h"

namespace onesum::bridge {

// What the calls of a group share. They keep it alive.
struct Group {
  explicit Group(std::shared_ptr<Cluster> its) : cluster(std::move(its)), ops("auto", 1, 0, 10, *cluster) {}

  const std::shared_ptr<Cluster> cluster;
  AllReduceCrossDeviceOps ops;
  std::mutex mutex;  // of messages, until they are there
  std::optional<PointToPoint> messages{};
};

class OnesumBackend : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  explicit OnesumBackend(const Membership& membership);
  ~OnesumBackend() override;

  const std::string getBackendName() const override { return "onesum"; }  // NOLINT: c10d's signature
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }

  // ---- reductions (backend_reductions.cc) ----
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  // ---- copies (backend_copies.cc) ----
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr all_gather_single(at::Tensor& output, at::Tensor& input,
                            const c10d::AllgatherOptions& options) override;
  WorkPtr all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr all_to_all_single(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;

  // ---- messages and meetings (backend_messages.cc) ----
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // ---- the life of the group and of its calls (backend.cc) ----
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  std::uint64_t getSequenceNumberForGroup() override { return calls_; }
  void enableCollectivesTiming() override {}
  c10d::ErrorType getError() override;
  bool supportsAbortHooks() const override { return true; }
  void registerAbortHook(std::int64_t id, c10d::AbortHook hook) override;
  void unregisterAbortHook(std::int64_t id) override;
  bool supportsCompletionHooks() const override { return true; }
  void registerCompletionHook(std::int64_t id, c10d::CompletionHook hook) override;
  void unregisterCompletionHook(std::int64_t id) override;
  void waitForPendingWorks() override;
  void shutdown() override;
  void abort() override;

 private:
  // Who wants to hear of calls that ended. Calls keep it alive.
  struct Hooks;
  struct Way {
    int other = 0;
    int tag = 0;
    bool sends = false;
    friend auto operator<=>(const Way&, const Way&) = default;
  };

  WorkPtr start(Call call);  // a collective
  WorkPtr start(Call call, WorkQueue& queue, std::uint64_t number);
  WorkPtr start_message(Tensors& tensors, const Way& way);
  std::chrono::milliseconds timeout_or_default(std::chrono::milliseconds timeout) const;

  const c10::intrusive_ptr<Options> options_;
  const std::shared_ptr<Group> group_;
  const std::shared_ptr<Hooks> hooks_;
  std::atomic<std::uint64_t> calls_{0};  // collectives so far
  std::atomic<std::uint64_t> messages_{0};
  std::mutex mutex_;  // of the following
  std::map<Way, std::unique_ptr<WorkQueue>> ways_;
  std::optional<std::vector<c10::intrusive_ptr<CallWork>>> coalesced_;
  WorkQueue queue_;
};

}  // namespace onesum::bridge
