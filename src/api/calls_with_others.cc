// Calls that this process makes together with other worker processes.
//
// A call that is new is told to all (api/session.h), and every worker makes the same request of what all have
// said. From then on workers do alike what depends on that request alone; what only one of them can find
// wrong ends the session.
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "api/accumulation_caller.h"
#include "api/caller_memory.h"
#include "api/cross_device_ops_impl.h"
#include "api/dense_copies.h"
#include "api/engines.h"
#include "api/merge_rows.h"
#include "api/sparse.h"
#include "planner/joint_request.h"

namespace onesum {
namespace {

bool reduces(planner::CallKind kind) {
  return kind == planner::CallKind::kReduce || kind == planner::CallKind::kBatchReduce;
}

// Looks at the indices of this process's components where the call will, as far as it knows what they must be
// less than: so most that are wrong are found before anything is agreed on.
void check_indices(const api::CallTraits& traits, const planner::Request& own, const api::Pairs& pairs) {
  for (std::size_t p = 0; p < own.pairs.size(); ++p) {
    std::optional<std::int64_t> bound;
    bool is_mixed = false;
    for (const planner::ComponentInfo& replica : own.pairs[p].replicas) {
      const Shape* const dense =
          replica.indices ? (replica.dense_shape ? &*replica.dense_shape : nullptr) : &replica.tensor.shape;
      if (dense != nullptr && dense->rank() > 0) bound = (*dense)[0];
      is_mixed = is_mixed || !replica.indices;
    }
    if (!is_mixed && own.options.sparse_rows != SparseRows::kMergeDuplicates) continue;
    for (std::size_t r = 0; r < own.pairs[p].replicas.size(); ++r) {
      const auto* slices = std::get_if<IndexedSlices>(&pairs[p].value->value(r));
      if (slices == nullptr) continue;
      api::checked_indices(*slices, bound,
                           planner::name_of_pair(traits.kind, p) + ": replica " + std::to_string(r));
    }
  }
}

// What this process alone can find wrong with its part of a call that is new, while all can still hear of it.
void check_own(const api::CallTraits& traits, const planner::Request& own, const api::Pairs& pairs,
               const Device& defaults) {
  if (!reduces(traits.kind)) return;
  check_indices(traits, own, pairs);
  if (traits.into) api::refuse_overlaps(traits, pairs, defaults);
}

// What a call is kept by that is told every time: what all said, and what is this process's own affair.
Fingerprint joined(const Fingerprint& of_all, const Fingerprint& own) {
  Hasher both;
  for (const Fingerprint& part : {of_all, own}) {
    both.add(part.low);
    both.add(part.high);
  }
  return both.finish();
}

}  // namespace

std::vector<Mirrored> CrossDeviceOps::Impl::call_with_others(const api::CallTraits& traits,
                                                             const api::Pairs& pairs,
                                                             const CommunicationOptions& options,
                                                             Clock::time_point start) {
  const api::CallKey key = api::key_of(traits, pairs, options, cluster.state().defaults);
  const auto known = cache_.find(key.fingerprint);
  const bool is_known = known != cache_.end();
  api::Session::Call call(*cluster.state().session,
                          is_known ? known->second.bound->crossed().known_call.number() : 0,
                          api::deadline_of(options, start));
  if (!is_known) return call_as_told(call, traits, pairs, options, key, start);
  known->second.last_used = ++uses_;
  api::BoundCall& bound = *known->second.bound;
  call.set_text(bound.crossed().text);
  std::vector<Mirrored> results;
  try {
    if (!traits.into) results = bound.make_results();
    bound.set_addresses(pairs, results);
  } catch (...) {
    call.end_after(std::current_exception());
  }
  record(bound, start, execute_with_others(call, bound, pairs));
  return results;
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_as_told(api::Session::Call& call,
                                                         const api::CallTraits& traits,
                                                         const api::Pairs& pairs,
                                                         const CommunicationOptions& options,
                                                         const api::CallKey& key, Clock::time_point start) {
  const Device& defaults = cluster.state().defaults;
  api::JointCall joint = call.join([&] {
    planner::Request own = own_request(traits, pairs, options);
    check_own(traits, own, pairs, cluster.state().defaults);
    return own;
  });
  if (pairs.size() == 0) return {};
  const std::vector<api::MixedPair> mixed = call.alike([&] { return api::make_dense(joint.request); });
  std::optional<api::MergeRows> merge;
  if (api::merges_rows(joint.request)) {
    call.alike([&] {
      merge.emplace(traits, pairs, joint.request, planner.placement(), cluster.state().session->rank());
    });
    joint.request = merge->request();
  }
  // What others bring to a concatenation, or mix, is known only when they have said so.
  const bool is_told_each_time = key.has_sparse || !mixed.empty() ||
                                 traits.kind == planner::CallKind::kGather ||
                                 (planner::has_parts(traits.kind) && !traits.has_equal_parts);
  const Fingerprint kept_as =
      is_told_each_time ? joined(joint.fingerprint, key.fingerprint) : key.fingerprint;
  api::BoundCall& bound = bound_with_others(traits, std::move(joint), kept_as, call);
  call.set_text(bound.crossed().text);
  std::optional<api::DenseCopies> copies;
  std::vector<Mirrored> results;
  try {
    if (merge) merge->check_indices();
    copies.emplace(traits, merge ? merge->pairs() : pairs, mixed, defaults);
    if (!traits.into) results = bound.make_results();
    bound.set_addresses(copies->pairs(), results);
  } catch (...) {
    call.end_after(std::current_exception());
  }
  const exec::Waiting waiting = execute_with_others(call, bound, copies->pairs());
  if (merge) {
    call.alike([&] { merge->read_indices(results); });
    try {
      results = merge->finish(std::move(results), api::deadline_of(options, start));
    } catch (...) {
      call.end_after(std::current_exception());
    }
  }
  record(bound, start, waiting);
  return results;
}

exec::Waiting CrossDeviceOps::Impl::execute_with_others(api::Session::Call& call, api::BoundCall& bound,
                                                        const api::Pairs& pairs) {
  api::AccumulationCaller caller(accumulation_fn, bound, pairs);
  try {
    bound.copy_replicas();
  } catch (...) {
    call.end_after(std::current_exception());
  }
  return call.run(bound.instance(), bound.token(), bound.bytes(), &caller);
}

void CrossDeviceOps::Impl::run_with_others(api::BoundCall& bound, const api::Pairs& pairs,
                                           const CommunicationOptions& options, Clock::time_point start) {
  const api::Crossed& crossed = bound.crossed();
  api::Session::Call call(*cluster.state().session, crossed.known_call.number(),
                          api::deadline_of(options, start));
  call.set_text(crossed.text);
  record(bound, start, execute_with_others(call, bound, pairs));
}

std::unique_ptr<api::BoundCall> CrossDeviceOps::Impl::bind_with_others(const api::CallTraits& traits,
                                                                       const api::Pairs& pairs,
                                                                       const CommunicationOptions& options,
                                                                       Clock::time_point start) {
  api::Session::Call call(*cluster.state().session, 0, api::deadline_of(options, start));
  api::JointCall joint = call.join([&] {
    planner::Request own = own_request(traits, pairs, options);
    check_own(traits, own, pairs, cluster.state().defaults);
    return own;
  });
  return call.alike([&]() -> std::unique_ptr<api::BoundCall> {
    const bool is_mixed = !api::make_dense(joint.request).empty();
    if (api::merges_rows(joint.request)) {
      const api::MergeRows validated(traits, pairs, joint.request, planner.placement(),
                                     cluster.state().session->rank());
      return nullptr;
    }
    std::unique_ptr<api::BoundCall> bound = bind_joint(traits, std::move(joint), call.deadline());
    if (is_mixed) return nullptr;
    try {
      bound->set_addresses(pairs);
    } catch (...) {
      call.end_after(std::current_exception());
    }
    return bound;
  });
}

// Asks nobody: the others are assumed to call as this worker does.
planner::Planned CrossDeviceOps::Impl::plan_with_others(const api::CallTraits& traits,
                                                        const api::Pairs& pairs,
                                                        const CommunicationOptions& options) {
  const auto own = static_cast<std::size_t>(cluster.state().session->rank());
  const std::vector<Device>& workers = cluster.state().workers;
  planner::Request request =
      planner::joined(planner::said_alike(own_request(traits, pairs, options), own, workers), workers);
  api::make_dense(request);
  if (!api::merges_rows(request)) return planner.plan(request);
  const api::MergeRows merge(traits, pairs, std::move(request), planner.placement(),
                             static_cast<std::int32_t>(own));
  planner::Planned planned = planner.plan(merge.request());
  merge.explain_in(planned);
  return planned;
}

// This process's part of a call: its devices complete, and its own.
planner::Request CrossDeviceOps::Impl::own_request(const api::CallTraits& traits, const api::Pairs& pairs,
                                                   const CommunicationOptions& options) const {
  const Cluster::State& state = cluster.state();
  planner::Request request = api::describe(traits, pairs, options, state.defaults);
  request.policy = planner::to_string(planner.policy());
  const auto own = static_cast<std::int32_t>(state.session->rank());
  const auto complete = [&](Device& device, const std::string& what) {
    device = planner::place(device.canonical(state.defaults), planner.placement(), what);
    if (planner::rank_of(device, planner.placement()) == own) return;
    throw Error(ErrorCode::kInvalidArgument, what + " is on " + device.to_string() +
                                                 ", a device of another worker; expected one of " +
                                                 state.workers[static_cast<std::size_t>(own)].to_string());
  };
  for (std::size_t p = 0; p < request.pairs.size(); ++p) {
    planner::PairInfo& pair = request.pairs[p];
    const std::string name = planner::name_of_pair(request.kind, p);
    for (planner::ComponentInfo& replica : pair.replicas)
      complete(replica.tensor.device, name + ": a replica");
    for (planner::ComponentInfo& result : pair.results) complete(result.tensor.device, name + ": a result");
    if (pair.destination_is_text) continue;
    for (Device& device : pair.destinations) device = device.canonical(state.defaults);
  }
  return request;
}

api::BoundCall& CrossDeviceOps::Impl::bound_with_others(const api::CallTraits& traits, api::JointCall joint,
                                                        const Fingerprint& kept_as,
                                                        api::Session::Call& call) {
  const auto found = cache_.find(kept_as);
  if (found == cache_.end())
    return keep(kept_as, call.alike([&] { return bind_joint(traits, std::move(joint), call.deadline()); }));
  found->second.last_used = ++uses_;
  return *found->second.bound;
}

std::unique_ptr<api::BoundCall> CrossDeviceOps::Impl::bind_joint(const api::CallTraits& traits,
                                                                 api::JointCall joint,
                                                                 Clock::time_point deadline) {
  api::Session& session = *cluster.state().session;
  planner::Planned planned = planner.plan(joint.request);
  warn_of_nccl(traits.kind, planned);
  std::string text = joint.words->text;
  const auto is_here = [&](std::size_t device) {
    return planned.plan->device_rank[device] == session.rank();
  };
  exec::Site site = session.site(api::host_engine(), api::queued_engines_of(planned.devices, is_here));
  site.communicators = cluster.state().communicators.of(planned, &session, deadline);
  return std::make_unique<api::BoundCall>(
      traits, std::move(planned), site,
      api::Crossed{&session.transport(), joint.fingerprint, std::move(text),
                   api::Session::KnownCall(session, std::move(joint.words))});
}

}  // namespace onesum
