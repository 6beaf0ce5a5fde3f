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

PreparedReduce::State::State(std::shared_ptr<CrossDeviceOps::Impl> on, ReduceOp op,
                             std::span<const PerReplica> from, std::span<const PerReplica> to,
                             const CommunicationOptions& with)
    : ops(std::move(on)),
      traits(traits_into(op)),
      values(from.begin(), from.end()),
      results(to.begin(), to.end()),
      options(with),
      arguments{values, results} {
  try {
    planner::validate_options(op, options);
    api::check_lengths(arguments);
  } catch (const Error& error) {
    ops->refuse(error, {});
  }
  if (values.empty()) return;
  if (ops->cluster.state().session) {
    const Clock::time_point start = now();
    const cluster::Sequence::Turn turn = ops->take_turn(options, start);
    bound = ops->bind_with_others(traits, arguments.pairs(), options, start);
    return;
  }
  const api::CallKey key = api::key_of(traits, arguments.pairs(), options, ops->cluster.state().defaults);
  if (key.mixes_dense_and_sparse || key.merges_rows) {
    ops->plan_call(traits, arguments.pairs(), options);  // for what it refuses
    return;
  }
  bound = ops->bind(traits, arguments.pairs(), options);
  bound->set_addresses(arguments.pairs());
}

void PreparedReduce::State::run_in_turn(Clock::time_point start) {
  if (bound) {
    ops->run(*bound, arguments.pairs(), options, start);
  } else {
    ops->call_in_turn(traits, arguments.pairs(), options, start);
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
  const cluster::Sequence::Turn turn = state_->ops->take_turn(state_->options, start);
  state_->run_in_turn(start);
}

Work PreparedReduce::start() {
  api::require_cross_replica_context("PreparedReduce::start");
  require_state(state_);
  return api::start_work(state_->ops->cluster, [state = state_, start = now()] {
    state->ops->refuse_if_late(state->options, start);
    state->run_in_turn(start);
    return std::vector<Mirrored>();
  });
}

}  // namespace onesum
