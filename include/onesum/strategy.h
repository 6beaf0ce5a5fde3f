// Data-parallel training in one process: one replica of the work per device, variables mirrored on all.
//
//   MirroredStrategy strategy({"CPU:0", "CPU:1"});
//   PerReplica losses = strategy.run([&](ReplicaContext& replica) { …; return loss; });
//   Tensor loss = strategy.reduce(ReduceOp::kMean, losses);
//
// A thread is in replica context while it runs a replica, and in cross-replica context otherwise. Each has
// its own calls: ReplicaContext for the one, MirroredStrategy and CrossDeviceOps for the other; a
// cross-replica call made in a replica is invalid_argument.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <onesum/cross_device_ops.h>
#include <onesum/device.h>
#include <onesum/export.h>
#include <onesum/options.h>
#include <onesum/tensor.h>
#include <onesum/values.h>
#include <onesum/variable.h>

namespace onesum {

class MirroredStrategy;

// One replica of a MirroredStrategy::run, used by that replica's thread alone.
//
// all_reduce and merge_call are made by all replicas together, in the same order. They return when every
// replica has made the call. If one throws, returns or makes a different call instead, the others get
// aborted, naming it and what it did, and so does every later call of this run. If one does not come within
// the timeout (30 minutes if the call takes no options), the first who waited that long gets
// deadline_exceeded, naming it, and the others aborted. If the call itself fails, every replica gets its
// error and may go on.
//
// Values passed must be on the replica's own device; what is returned is on it too.
class ONESUM_API ReplicaContext {
 public:
  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;

  int replica_id() const noexcept { return replica_id_; }  // 0 … num_replicas() - 1
  int num_replicas() const noexcept;
  const Device& device() const noexcept;
  MirroredStrategy& strategy() const noexcept { return *strategy_; }

  // The sum or mean (or what else the operation is) over all replicas, the same on each. The lists are
  // reduced in one batch_reduce; type, shape and number must be the same on all replicas (rows of slices may
  // differ in number).
  Tensor all_reduce(ReduceOp op, const Tensor& value, const CommunicationOptions& options = {});
  IndexedSlices all_reduce(ReduceOp op, const IndexedSlices& value, const CommunicationOptions& options = {});
  std::vector<Tensor> all_reduce(ReduceOp op, std::span<const Tensor> values,
                                 const CommunicationOptions& options = {});
  std::vector<Tensor> all_reduce(ReduceOp op, std::initializer_list<Tensor> values,
                                 const CommunicationOptions& options = {});
  std::vector<Value> all_reduce(ReduceOp op, std::span<const Value> values,
                                const CommunicationOptions& options = {});

  // Calls replica 0's fn(MirroredStrategy&, std::span<const PerReplica>) once, in cross-replica context and
  // in the strategy's scope, with one PerReplica per argument, while all replicas wait. Of each value that fn
  // returns the replica gets the component on its device, or the only one there is:
  //   fn returns               merge_call returns
  //   void                     void
  //   Mirrored, PerReplica     Value
  //   a std::vector of these   std::vector<Value>
  template <class Fn>
  auto merge_call(Fn&& fn, std::span<const Value> args) {
    return merge_values(fn, {args.begin(), args.end()});
  }
  template <class Fn>
  auto merge_call(Fn&& fn, std::span<const Tensor> args) {
    return merge_values(fn, {args.begin(), args.end()});
  }
  template <class Fn>
  auto merge_call(Fn&& fn, std::initializer_list<Value> args = {}) {
    return merge_values(fn, args);
  }

  struct Call;  // internal
  using MergeFn = std::function<std::vector<PerReplica>(MirroredStrategy&, std::span<const PerReplica>)>;

 private:
  friend class MirroredStrategy;
  ReplicaContext(MirroredStrategy& strategy, int replica_id)
      : strategy_(&strategy), replica_id_(replica_id) {}

  std::vector<Value> meet(Call call);
  std::vector<Value> merge(const MergeFn& fn, std::vector<Value> args);

  template <class Fn>
  auto merge_values(Fn& fn, std::vector<Value> args) {
    using Values = std::span<const PerReplica>;
    using Result = std::remove_cvref_t<std::invoke_result_t<Fn&, MirroredStrategy&, Values>>;
    if constexpr (std::is_void_v<Result>) {
      merge(
          [&fn](MirroredStrategy& strategy, Values values) {
            fn(strategy, values);
            return std::vector<PerReplica>();
          },
          std::move(args));
    } else if constexpr (std::is_convertible_v<Result, PerReplica>) {
      auto one = [&fn](MirroredStrategy& strategy, Values values) {
        return std::vector<PerReplica>(1, PerReplica(fn(strategy, values)));
      };
      return std::move(merge(one, std::move(args)).front());
    } else {
      auto many = [&fn](MirroredStrategy& strategy, Values values) {
        const auto& results = fn(strategy, values);
        return std::vector<PerReplica>(results.begin(), results.end());
      };
      return merge(many, std::move(args));
    }
  }

  MirroredStrategy* strategy_;
  int replica_id_;
};

// Reductions and broadcasts of a strategy, in cross-replica context: those of its CrossDeviceOps.
class ONESUM_API StrategyExtended {
 public:
  Mirrored reduce_to(ReduceOp op, const PerReplica& value, const Destination& destination,
                     const CommunicationOptions& options = {});
  std::vector<Mirrored> batch_reduce_to(ReduceOp op, std::span<const ValueDestination> pairs,
                                        const CommunicationOptions& options = {});
  Mirrored broadcast_to(const Value& value, const Destination& destination);

 private:
  friend class MirroredStrategy;
  explicit StrategyExtended(MirroredStrategy& strategy) : strategy_(&strategy) {}
  MirroredStrategy* strategy_;
};

// The life of a strategy's scope. Belongs to the thread that opened it; ends before the strategy does.
class ONESUM_API StrategyScope {
 public:
  ~StrategyScope();
  StrategyScope(const StrategyScope&) = delete;
  StrategyScope& operator=(const StrategyScope&) = delete;

 private:
  friend class MirroredStrategy;
  explicit StrategyScope(const MirroredStrategy& strategy);
  const MirroredStrategy* before_;
};

// Stays where it was made: neither copied nor moved.
class ONESUM_API MirroredStrategy {
 public:
  // One replica per device, in this order; two equal devices are refused. No devices: CPU:0, CPU:1, … as many
  // as cores the process may use (or ONESUM_THREADS). No `cross_device_ops`: ReductionToOneDevice; a
  // std::unique_ptr will do.
  explicit MirroredStrategy(std::vector<std::string> devices = {},
                            std::shared_ptr<CrossDeviceOps> cross_device_ops = nullptr);
  ~MirroredStrategy();
  MirroredStrategy(const MirroredStrategy&) = delete;
  MirroredStrategy& operator=(const MirroredStrategy&) = delete;

  int num_replicas() const noexcept { return static_cast<int>(devices().size()); }
  std::span<const Device> devices() const noexcept;  // complete, in replica order
  CrossDeviceOps& cross_device_ops() const noexcept;

  // Until it ends, Variables that this thread makes are mirrored on the strategy's devices. May be nested in
  // itself, not in another strategy's.
  [[nodiscard]] StrategyScope scope() const;

  // Calls fn(ReplicaContext&) once per replica, each on a thread of its own, and returns when all are done.
  // The threads are made at the first run and live as long as the strategy. fn returns nothing or a value on
  // the replica's device (Tensor, IndexedSlices or Value), which are returned as a PerReplica.
  //
  // If replicas throw, run rethrows what the lowest of them threw, passing over those that were only aborted
  // because of another one. The strategy stays usable. Runs of one strategy take turns; a run inside
  // merge_call of the same strategy is refused.
  template <class Fn>
  auto run(Fn&& fn) {
    using Result = std::invoke_result_t<Fn&, ReplicaContext&>;
    if constexpr (std::is_void_v<Result>) {
      run_replicas([&fn](ReplicaContext& replica) { fn(replica); });
    } else {
      static_assert(std::is_convertible_v<Result, Value>, "fn returns void, Tensor, IndexedSlices or Value");
      std::vector<Value> results(devices().size());
      run_replicas([&fn, &results](ReplicaContext& replica) {
        results[static_cast<std::size_t>(replica.replica_id())] = fn(replica);
      });
      return per_replica(std::move(results));
    }
  }

  // The sum or mean, or what else the operation is, of all replicas, on the host (CPU:0).
  Mirrored reduce(ReduceOp op, const PerReplica& value, const CommunicationOptions& options = {});

  StrategyExtended extended() { return StrategyExtended(*this); }

 private:
  friend class ReplicaContext;
  void run_replicas(const std::function<void(ReplicaContext&)>& fn);
  PerReplica per_replica(std::vector<Value> results) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onesum
