#include "api/cross_device_ops_impl.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "api/accumulation_caller.h"
#include "api/collective.h"
#include "api/community.h"
#include "api/dense_copies.h"
#include "api/engines.h"
#include "api/machine_constants.h"
#include "api/merge_rows.h"
#include "base/log.h"
#include "planner/spec.h"

namespace onesum {
namespace {

// A training loop makes a handful of kinds of calls; sparse ones with ever new row counts make a kind each.
constexpr std::size_t kMaxBoundCalls = 128;

constexpr std::chrono::minutes kDefaultTimeout{30};

planner::Placement placement_of(const Cluster& cluster, const planner::Policy& policy) {
  const Cluster::State& state = cluster.state();
  const bool has_others = state.session != nullptr;
  const bool by_network = has_others && is_network(state.session->community()->transport);
  std::vector<Device> others = state.hosts;
  others.insert(others.end(), state.gpus.begin(), state.gpus.end());
  const bool share_gpus = !has_others && !state.has_own_gpus && state.workers.size() > 1;
  return {state.shared_defaults(), state.devices, state.workers, std::move(others),     policy.all_workers,
          state.machines,          by_network,    share_gpus,    state.why_not_served()};
}

plan::CostConstants constants_of(const Cluster& cluster) {
  const Cluster::State& state = cluster.state();
  return state.session ? state.session->constants() : api::constants_in_force().values;
}

}  // namespace

CrossDeviceOps::Impl::Impl(const planner::Policy& policy, AccumulationFn fn, const Cluster& on)
    : cluster(on),
      accumulation_fn(std::move(fn)),
      planner(policy, placement_of(on, policy), constants_of(on)) {}

std::vector<Mirrored> CrossDeviceOps::Impl::call(const api::CallTraits& traits, const api::Pairs& pairs,
                                                 const CommunicationOptions& options) {
  const Clock::time_point start = now();
  // What this process refuses others may not: with them, everything is refused in the call's turn.
  if (!cluster.state().session) planner::validate_options(traits.op, options);
  const cluster::Sequence::Turn turn = take_turn(options, start);
  return call_in_turn(traits, pairs, options, start);
}

cluster::Sequence::Turn CrossDeviceOps::Impl::take_turn(const CommunicationOptions& options,
                                                        Clock::time_point start) {
  try {
    return cluster::Sequence::Turn(cluster.state().sequence, api::deadline_of(options, start));
  } catch (const Error& error) {
    give_up(error);
    throw;
  }
}

void CrossDeviceOps::Impl::give_up(const Error& error) {
  if (cluster.state().session && error.code() == ErrorCode::kDeadlineExceeded)
    cluster.state().session->give_up(error);
}

void CrossDeviceOps::Impl::refuse_if_late(const CommunicationOptions& options, Clock::time_point start) {
  if (now() < api::deadline_of(options, start)) return;
  const Error error(
      ErrorCode::kDeadlineExceeded,
      "the call's timeout passed while it waited for earlier calls on the same cluster to finish");
  give_up(error);
  throw Error(error);
}

void CrossDeviceOps::Impl::refuse(const Error& error, const CommunicationOptions& options) {
  if (!cluster.state().session) throw Error(error);
  const Clock::time_point start = now();
  const cluster::Sequence::Turn turn = take_turn({}, start);
  refuse_in_turn(error, options, start);
}

void CrossDeviceOps::Impl::refuse_in_turn(const Error& error, const CommunicationOptions& options,
                                          Clock::time_point start) {
  if (!cluster.state().session) throw Error(error);
  api::Session::Call call(*cluster.state().session, 0, api::deadline_of(options, start));
  call.join([&]() -> planner::Request { throw Error(error); });
  throw Error(error);
}

void CrossDeviceOps::Impl::check(const Collective& call, const CommunicationOptions& options) const {
  planner::validate_options(call.op, options);
  api::check(call, planner.policy(), cluster.size());
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_in_turn(const api::CallTraits& traits,
                                                         const api::Pairs& pairs,
                                                         const CommunicationOptions& options,
                                                         Clock::time_point start) {
  if (cluster.state().session) return call_with_others(traits, pairs, options, start);
  if (pairs.size() == 0) return {};
  const Device& defaults = cluster.state().defaults;
  const api::CallKey key = api::key_of(traits, pairs, options, defaults);
  if (!key.mixes_dense_and_sparse) return call_unmixed(traits, pairs, options, key, start);
  planner::Request request = api::describe(traits, pairs, options, defaults);
  const api::DenseCopies copies(traits, pairs, api::make_dense(request), defaults);
  return call_unmixed(traits, copies.pairs(), options, api::key_of(traits, copies.pairs(), options, defaults),
                      start);
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_unmixed(const api::CallTraits& traits,
                                                         const api::Pairs& pairs,
                                                         const CommunicationOptions& options,
                                                         const api::CallKey& key, Clock::time_point start) {
  std::optional<api::MergeRows> merge;
  if (key.merges_rows) {
    merge.emplace(traits, pairs, api::describe(traits, pairs, options, cluster.state().defaults),
                  planner.placement());
    merge->refuse_overlaps();
    merge->read_indices();
  }
  const api::Pairs run_pairs = merge ? merge->pairs() : pairs;
  const Fingerprint fingerprint =
      merge ? api::key_of(traits, run_pairs, options, cluster.state().defaults).fingerprint : key.fingerprint;
  api::BoundCall& bound = cached(traits, run_pairs, options, fingerprint);
  std::vector<Mirrored> results;
  if (!traits.into) results = bound.make_results();
  bound.set_addresses(run_pairs, results);
  execute(bound, run_pairs, options, start);
  if (merge) results = merge->finish(std::move(results), api::deadline_of(options, start));
  record(bound, start);
  return results;
}

planner::Planned CrossDeviceOps::Impl::plan_call(const api::CallTraits& traits, const api::Pairs& pairs,
                                                 const CommunicationOptions& options) {
  planner::validate_options(traits.op, options);
  if (cluster.state().session) return plan_with_others(traits, pairs, options);
  const Device& defaults = cluster.state().defaults;
  const api::CallKey key = api::key_of(traits, pairs, options, defaults);
  if (!key.mixes_dense_and_sparse) return plan_unmixed(traits, pairs, options, key.merges_rows);
  planner::Request request = api::describe(traits, pairs, options, defaults);
  const api::DenseCopies copies(traits, pairs, api::make_dense(request), defaults);
  return plan_unmixed(traits, copies.pairs(), options, key.merges_rows);
}

planner::Planned CrossDeviceOps::Impl::plan_unmixed(const api::CallTraits& traits, const api::Pairs& pairs,
                                                    const CommunicationOptions& options, bool merges_rows) {
  const Device& defaults = cluster.state().defaults;
  planner::Request request = api::describe(traits, pairs, options, defaults);
  if (!merges_rows) return planner.plan(request);
  const api::MergeRows merge(traits, pairs, std::move(request), planner.placement());
  merge.refuse_overlaps();
  planner::Planned planned = planner.plan(api::describe(traits, merge.pairs(), options, defaults));
  merge.explain_in(planned);
  return planned;
}

api::BoundCall& CrossDeviceOps::Impl::cached(const api::CallTraits& traits, const api::Pairs& pairs,
                                             const CommunicationOptions& options,
                                             const Fingerprint& fingerprint) {
  const auto found = cache_.find(fingerprint);
  if (found == cache_.end()) return keep(fingerprint, bind(traits, pairs, options));
  found->second.last_used = ++uses_;
  return *found->second.bound;
}

api::BoundCall& CrossDeviceOps::Impl::keep(const Fingerprint& fingerprint,
                                           std::unique_ptr<api::BoundCall> bound) {
  if (cache_.size() >= kMaxBoundCalls) forget_oldest();
  Entry& entry = cache_.insert_or_assign(fingerprint, Entry{std::move(bound), ++uses_}).first->second;
  return *entry.bound;
}

std::unique_ptr<api::BoundCall> CrossDeviceOps::Impl::bind(const api::CallTraits& traits,
                                                           const api::Pairs& pairs,
                                                           const CommunicationOptions& options) {
  planner::Planned planned = planner.plan(api::describe(traits, pairs, options, cluster.state().defaults));
  if (is_logged(LogLevel::kDebug)) {
    for (const planner::Choice& choice : planned.choices) {
      log(LogLevel::kDebug, choice.algorithm + ": " + choice.reason);
    }
  }
  warn_of_nccl(traits.kind, planned);
  exec::Site site{api::host_engine()};
  site.queued = api::queued_engines_of(planned.devices, [](std::size_t) { return true; });
  site.communicators = cluster.state().communicators.of(planned, nullptr, {});
  return std::make_unique<api::BoundCall>(traits, std::move(planned), site);
}

void CrossDeviceOps::Impl::warn_of_nccl(planner::CallKind kind, const planner::Planned& planned) {
  const planner::Policy& policy = planner.policy();
  const auto names_nccl = [](const AllReduceSpec& spec) { return planner::has_level(spec, "nccl"); };
  if (kind != planner::CallKind::kReduce && kind != planner::CallKind::kBatchReduce) return;
  if (std::ranges::none_of(policy.specs, names_nccl)) return;
  const Device* const other = planner::replica_without_gpu(planned);
  if (other == nullptr || warned_of_nccl_.test_and_set(std::memory_order_relaxed)) return;
  log(LogLevel::kWarning, policy.name + ": NCCL serves GPUs only, and there are other devices (" +
                              other->to_string() + "); our own reduce takes its place");
}

void CrossDeviceOps::Impl::forget_oldest() {
  const auto older = [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; };
  cache_.erase(std::min_element(cache_.begin(), cache_.end(), older));
}

void CrossDeviceOps::Impl::run(api::BoundCall& bound, const api::Pairs& pairs,
                               const CommunicationOptions& options, Clock::time_point start) {
  if (cluster.state().session) return run_with_others(bound, pairs, options, start);
  execute(bound, pairs, options, start);
  record(bound, start);
}

void CrossDeviceOps::Impl::execute(api::BoundCall& bound, const api::Pairs& pairs,
                                   const CommunicationOptions& options, Clock::time_point start) {
  api::AccumulationCaller caller(accumulation_fn, bound, pairs);
  bound.copy_replicas();
  bound.run(api::deadline_of(options, start), &caller);
}

void CrossDeviceOps::Impl::record(const api::BoundCall& bound, Clock::time_point start,
                                  const exec::Waiting& waiting) {
  record_.add(bound.planned().plan, bound.tensors(), bound.bytes(), now() - start, waiting);
}

namespace api {

Clock::time_point deadline_of(const CommunicationOptions& options, Clock::time_point start) {
  if (!options.timeout) return start + kDefaultTimeout;
  const auto longest =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - start);
  return start + std::min(*options.timeout, longest);
}

Pairs pairs_of(const std::span<const ValueDestination>& pairs) {
  return {pairs.size(), &pairs, [](const void* span, std::size_t i) {
            const ValueDestination& pair = (*static_cast<const std::span<const ValueDestination>*>(span))[i];
            return pair_of(pair.value, pair.destination);
          }};
}

}  // namespace api
}  // namespace onesum
