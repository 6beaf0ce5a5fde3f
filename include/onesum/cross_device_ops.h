// Reductions and broadcasts across the devices of a cluster.
//
// The classes differ in the policy they give to the common base; the base validates, plans and runs. All
// functions validate everything before any work and throw onesum::Error; an input is never modified, except
// where the caller passes it as the result. Results are memory of their own unless the caller passed it.
// Objects may be used from several threads; calls on one cluster run one after the other, in call order. They
// belong to cross-replica context: inside a replica of MirroredStrategy::run they are refused (use
// ReplicaContext). Rules in full: docs/semantics.md.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onesum/cluster.h>
#include <onesum/collective.h>
#include <onesum/export.h>
#include <onesum/options.h>
#include <onesum/plan.h>
#include <onesum/values.h>

namespace onesum {

namespace planner {
struct Policy;
}

// What one call did.
struct CallReport {
  std::uint64_t number = 0;  // of the call on its object, from 1; 0: none yet
  std::string algorithm;     // "one_device", …
  std::size_t tensors = 0;
  std::size_t bytes = 0;  // of one replica of everything that was reduced
  std::chrono::nanoseconds time{0};
  // Of that, how long this worker waited for others, and the rank that it waited for longest at a stretch
  // (-1: for nobody).
  std::chrono::nanoseconds waited{0};
  int waited_for = -1;
};

// A call under way. Destroying it waits for it; an error that nobody asked for is logged.
class ONESUM_API Work {
 public:
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  void wait();  // until done; throws what the call threw
  bool wait_for(
      std::chrono::nanoseconds longest);  // returns whether it is done; throws nothing of the call's
  bool is_done() const noexcept;
  // Calls `fn` once it is done: at once if it is, else on the thread that has done it. It must not throw, nor
  // wait for other Works.
  void when_done(std::function<void()> fn);
  std::vector<Mirrored> results();  // waits; empty for calls into the caller's memory

  struct State;  // internal
  explicit Work(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

// A reduction validated, planned and bound once, to run again and again on the same tensors, whose memory it
// keeps hold of (borrowed memory stays the caller's duty).
class ONESUM_API PreparedReduce {
 public:
  PreparedReduce(PreparedReduce&&) noexcept;
  PreparedReduce& operator=(PreparedReduce&&) noexcept;
  ~PreparedReduce();

  void run();
  Work start();

  struct State;  // internal
  explicit PreparedReduce(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

// Gets all components of a value, in replica order, and returns their sum (or what takes its place), of the
// shape and type of the first one. It must not call the object that calls it. Where workers are processes of
// their own it is called in one of them, the one that sums; what it gets of the others' replicas are copies
// that live for the call. What it throws ends the group (cluster.h).
using AccumulationFn = std::function<Tensor(std::span<const Tensor>)>;

class ONESUM_API CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps();
  CrossDeviceOps(const CrossDeviceOps&) = delete;
  CrossDeviceOps& operator=(const CrossDeviceOps&) = delete;

  // The sum or mean (or what else the operation is) of all replicas, on every device of the destination, in
  // the destination's order.
  Mirrored reduce(ReduceOp op, const PerReplica& value, const Destination& destination,
                  const CommunicationOptions& options = {});

  // The same for many values at once; results in the order of the pairs.
  std::vector<Mirrored> batch_reduce(ReduceOp op, std::span<const ValueDestination> pairs,
                                     const CommunicationOptions& options = {});

  // Copies of the root's value on every device of the destination. The root is a worker's rank; where all
  // workers are in this process, `value` is the root's, on whatever device it lives.
  Mirrored broadcast(const Value& value, const Destination& destination, int root = 0);

  // All replicas concatenated along `axis` in replica order (a negative axis counts from the last); they may
  // differ in that extent.
  Mirrored gather(const PerReplica& value, const Destination& destination, int axis,
                  const CommunicationOptions& options = {});

  // Into memory the caller has. results[i] has a component for each destination device; it may be exactly the
  // component of values[i] on that device (in place); any other overlap of a result is refused.
  void batch_reduce_into(ReduceOp op, std::span<const PerReplica> values, std::span<PerReplica> results,
                         const CommunicationOptions& options = {});

  // Without waiting. Works run in call order.
  Work batch_reduce_async(ReduceOp op, std::span<const ValueDestination> pairs,
                          const CommunicationOptions& options = {});

  PreparedReduce prepare(ReduceOp op, std::span<const PerReplica> values, std::span<PerReplica> results,
                         const CommunicationOptions& options = {});

  // Collectives of every kind, into memory the caller has (collective.h): at once, without waiting, and to
  // run again and again. Works run in call order. plan() and explain() of one assume what those below do.
  void run(const Collective& call, const CommunicationOptions& options = {});
  Work start(Collective call, const CommunicationOptions& options = {});
  PreparedReduce prepare(Collective call, const CommunicationOptions& options = {});
  Plan plan(const Collective& call, const CommunicationOptions& options = {}) const;
  Plan plan(const CollectiveSpec& spec, const CommunicationOptions& options = {}) const;
  std::string explain(const Collective& call, const CommunicationOptions& options = {}) const;
  std::string explain(const CollectiveSpec& spec, const CommunicationOptions& options = {}) const;

  // What a call would do, without doing it; the second form needs no memory. Where workers are processes of
  // their own nobody is asked: the first form assumes that all call alike, each with as many replicas, of the
  // same types and shapes, on its own devices; the second names the devices of all workers.
  Plan plan(ReduceOp op, std::span<const ValueDestination> pairs,
            const CommunicationOptions& options = {}) const;
  Plan plan(ReduceOp op, std::span<const ReduceSpec> specs, bool in_place = false,
            const CommunicationOptions& options = {}) const;

  // Why, in words: what was packed and chosen, what it costs and what was considered instead. The second form
  // needs no memory. Assumes what plan() does.
  std::string explain(ReduceOp op, std::span<const ValueDestination> pairs,
                      const CommunicationOptions& options = {}) const;
  std::string explain(ReduceOp op, std::span<const ReduceSpec> specs, bool in_place,
                      const CommunicationOptions& options = {}) const;

  // The last call that completed on this object.
  CallReport last_call() const;

  const Cluster& cluster() const noexcept;

 protected:
  CrossDeviceOps(const planner::Policy& policy, AccumulationFn accumulation_fn,
                 const std::optional<Cluster>& cluster);

 private:
  friend class PreparedReduce;
  struct Impl;  // internal; prepared calls and works keep it alive
  std::shared_ptr<Impl> impl_;
};

// Sums on one device, then copies to the destinations.
class ONESUM_API ReductionToOneDevice : public CrossDeviceOps {
 public:
  // `reduce_to_device`: where the sum is formed; absent: the first device of each destination.
  // `accumulation_fn`: called once per dense value, where the sum is formed; sparse values bypass it.
  explicit ReductionToOneDevice(const std::optional<std::string>& reduce_to_device = {},
                                const AccumulationFn& accumulation_fn = {},
                                const std::optional<Cluster>& cluster = {});
};

}  // namespace onesum
