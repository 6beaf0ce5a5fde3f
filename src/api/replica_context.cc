#include "api/replica_context.h"

#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>
#include <onesum/strategy.h>

#include "api/replica_call.h"
#include "api/replica_run.h"
#include "planner/request.h"

namespace onesum {
namespace api {

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadContext thread_context;

void refuse_replica_context(std::string_view what) {
  const ReplicaContext& replica = *current_replica();
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} was called by replica {} ({}), but belongs to cross-replica context: inside a replica "
                  "use ReplicaContext::all_reduce, or make the call in the function given to "
                  "ReplicaContext::merge_call",
                  what, replica.replica_id(), replica.device().to_string()));
}

}  // namespace api

int ReplicaContext::num_replicas() const noexcept { return strategy_->num_replicas(); }

const Device& ReplicaContext::device() const noexcept { return strategy_->devices()[replica_id_]; }

std::vector<Value> ReplicaContext::meet(Call call) {
  const char* name = call.merge != nullptr ? "merge_call" : "all_reduce";
  if (api::current_replica() != this) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("ReplicaContext::{} of replica {} was called {}; it belongs to that replica's thread, "
                    "while its run lasts",
                    name, replica_id_,
                    api::thread_context.run != nullptr && api::current_replica() == nullptr
                        ? "inside the function of a merge_call"
                        : "by another thread"));
  }
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    if (api::is_on(device(), call.values[i])) continue;
    api::refuse_value(device(), call.values[i],
                      fmt::format("{} of replica {}: value {}", name, replica_id_, i));
  }
  api::thread_context.run->meet(replica_id_, call);
  return std::move(call.results);
}

std::vector<Value> ReplicaContext::all_reduce(ReduceOp op, std::span<const Value> values,
                                              const CommunicationOptions& options) {
  planner::validate_options(op, options);
  return meet({.op = op, .options = options, .values = {values.begin(), values.end()}});
}

std::vector<Tensor> ReplicaContext::all_reduce(ReduceOp op, std::span<const Tensor> values,
                                               const CommunicationOptions& options) {
  const std::vector<Value> sums = all_reduce(op, std::vector<Value>(values.begin(), values.end()), options);
  std::vector<Tensor> tensors;
  tensors.reserve(sums.size());
  for (const Value& sum : sums) tensors.push_back(std::get<Tensor>(sum));
  return tensors;
}

std::vector<Tensor> ReplicaContext::all_reduce(ReduceOp op, std::initializer_list<Tensor> values,
                                               const CommunicationOptions& options) {
  return all_reduce(op, std::span<const Tensor>(values.begin(), values.size()), options);
}

Tensor ReplicaContext::all_reduce(ReduceOp op, const Tensor& value, const CommunicationOptions& options) {
  return std::move(all_reduce(op, std::span<const Tensor>(&value, 1), options).front());
}

IndexedSlices ReplicaContext::all_reduce(ReduceOp op, const IndexedSlices& value,
                                         const CommunicationOptions& options) {
  return std::get<IndexedSlices>(std::move(all_reduce(op, std::vector<Value>{value}, options).front()));
}

std::vector<Value> ReplicaContext::merge(const MergeFn& fn, std::vector<Value> args) {
  return meet({.merge = &fn, .values = std::move(args)});
}

}  // namespace onesum
