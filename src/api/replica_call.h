// A call that all replicas of a run make together: all_reduce or merge_call.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include <onesum/strategy.h>

namespace onesum {

// One replica's part in it. Lives on the replica's stack while it waits; ReplicaRun guards it.
struct ReplicaContext::Call {
  const MergeFn* merge = nullptr;  // null: an all_reduce, with `op` and `options`
  ReduceOp op = ReduceOp::kSum;
  CommunicationOptions options = {};
  std::vector<Value> values = {};

  bool is_done = false;
  std::vector<Value> results = {};
  std::exception_ptr error = nullptr;  // of the call itself: the same for all replicas
};

namespace api {

using ReplicaCall = ReplicaContext::Call;

// Whether `value` refers to memory on `device`, which is complete; partial devices are completed from it.
bool is_on(const Device& device, const Value& value);

// Throws invalid_argument for a value that is not, beginning with `what` it is.
[[noreturn]] void refuse_value(const Device& device, const Value& value, const std::string& what);

// "all_reduce(SUM, float32 [3])", "merge_call(2 values)".
std::string describe(const ReplicaCall& call);

// Whether two replicas make the same call. merge_calls take values of any shape, and are told apart by their
// number.
bool is_same_call(const ReplicaCall& a, const ReplicaCall& b);

// "all_reduce(SUM, float32 [3])" of a call that differs from `other`: in long lists the first value that
// differs.
std::string describe_beside(const ReplicaCall& call, const ReplicaCall& other);

// Runs the call, the same on all replicas, in cross-replica context, and gives each one its results.
void execute(MirroredStrategy& strategy, std::span<ReplicaCall* const> calls);

}  // namespace api
}  // namespace onesum
