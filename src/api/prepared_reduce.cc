#include "api/prepared_reduce.h"

#include <onesum/error.h>

#include "api/collective.h"
#include "api/replica_context.h"
#include "api/work.h"

namespace onesum {
namespace {

void require_state(const std::shared_ptr<PreparedReduce::State>& state) {
  if (!state)
    throw Error(ErrorCode::kInvalidArgument, "a PreparedReduce that was moved away has nothing to run");
}

}  // namespace

PreparedReduce::State::State(std::shared_ptr<CrossDeviceOps::Impl> on, Collective what,
                             const CommunicationOptions& with)
    : ops(std::move(on)), call(std::move(what)), traits(api::traits_of(call)), options(with) {
  try {
    ops->check(call, options);
  } catch (const Error& error) {
    ops->refuse(error, {});
  }
  if (call.values.empty()) return;
  const api::Pairs pairs = api::pairs_of(call);
  if (ops->cluster.state().session) {
    const Clock::time_point start = now();
    const cluster::Sequence::Turn turn = ops->take_turn(options, start);
    bound = ops->bind_with_others(traits, pairs, options, start);
    return;
  }
  const api::CallKey key = api::key_of(traits, pairs, options, ops->cluster.state().defaults);
  if (key.mixes_dense_and_sparse || key.merges_rows) {
    ops->plan_call(traits, pairs, options);  // for what it refuses
    return;
  }
  bound = ops->bind(traits, pairs, options);
  bound->set_addresses(pairs);
}

void PreparedReduce::State::run_in_turn(Clock::time_point start) {
  if (bound) {
    ops->run(*bound, api::pairs_of(call), options, start);
  } else {
    ops->call_in_turn(traits, api::pairs_of(call), options, start);
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
