#include "api/prepared_reduce.h"

#include <onesum/error.h>

#include "api/replica_context.h"
#include "api/work.h"

namespace onesum {
namespace {

api::CallTraits traits_into(ReduceOp op) { return {planner::CallKind::kBatchReduce, op, 0, true}; }

void require_state(const std::shared_ptr<PreparedReduce::State>& state) {
  if (!state)
    throw Error(ErrorCode::kInvalidArgument, "a PreparedReduce that was moved away has nothing to run");
}

}  // namespace

PreparedReduce::State::State(std::shared_ptr<CrossDeviceOps::Impl> ops, ReduceOp op,
                             std::span<const PerReplica> values, std::span<const PerReplica> results,
                             const CommunicationOptions& options)
    : ops_(std::move(ops)),
      traits_(traits_into(op)),
      values_(values.begin(), values.end()),
      results_(results.begin(), results.end()),
      options_(options),
      arguments_{values_, results_} {
  planner::validate_options(op, options);
  api::check_lengths(arguments_);
  const Device& defaults = ops_->cluster.state().defaults;
  if (values_.empty()) return;
  if (api::key_of(traits_, arguments_.pairs(), options_, defaults).mixes_dense_and_sparse) {
    ops_->plan_call(traits_, arguments_.pairs(), options_);  // for what it refuses
    return;
  }
  bound_ = ops_->bind(traits_, arguments_.pairs(), options_);
  bound_->set_addresses(arguments_.pairs());
}

void PreparedReduce::State::run_in_turn(Clock::time_point start) {
  if (bound_) {
    ops_->run(*bound_, arguments_.pairs(), options_, start);
  } else {
    ops_->call_in_turn(traits_, arguments_.pairs(), options_, start);
  }
}

PreparedReduce::PreparedReduce(std::shared_ptr<State> state) : state_(std::move(state)) {}
PreparedReduce::PreparedReduce(PreparedReduce&&) noexcept = default;
PreparedReduce& PreparedReduce::operator=(PreparedReduce&&) noexcept = default;
PreparedReduce::~PreparedReduce() = default;

void PreparedReduce::run() {
  api::require_cross_replica_context("PreparedReduce::run");
  require_state(state_);
  const Clock::time_point start = now();
  const cluster::Sequence::Turn turn(state_->ops_->cluster.state().sequence,
                                     api::deadline_of(state_->options_, start));
  state_->run_in_turn(start);
}

Work PreparedReduce::start() {
  api::require_cross_replica_context("PreparedReduce::start");
  require_state(state_);
  return api::start_work(state_->ops_->cluster, [state = state_, start = now()] {
    api::refuse_if_late(state->options_, start);
    state->run_in_turn(start);
    return std::vector<Mirrored>();
  });
}

}  // namespace onesum
