#include "api/cross_device_ops_impl.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

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

// All workers must plan alike: what a device leaves open is worker 0's.
planner::Placement placement_of(const Cluster& cluster, const planner::Policy& policy) {
  const Cluster::State& state = cluster.state();
  const Device& defaults = state.session ? state.hosts.front() : state.defaults;
  return {defaults, state.devices, state.workers, state.hosts, policy.all_workers};
}

plan::CostConstants constants_of(const Cluster& cluster) {
  const Cluster::State& state = cluster.state();
  return state.session ? state.session->constants() : api::constants_in_force().values;
}

// Calls the user's function for a pack, which is one tensor of one pair.
class AccumulationCaller final : public exec::FunctionCaller {
 public:
  AccumulationCaller(const AccumulationFn& function, const api::BoundCall& bound, const api::Pairs& pairs)
      : function_(function), bound_(bound), pairs_(pairs) {}

  std::byte* call(std::uint32_t pack) override {
    const planner::Planned& planned = bound_.planned();
    const planner::Stream& stream = planned.streams[planned.pack_streams[pack].front()];
    std::vector<Tensor> components;
    for (const Value& value : pairs_[stream.pair].value->values())
      components.push_back(std::get<Tensor>(value));
    Tensor result = function_(components);
    check(result, components.front(), stream.pair);
    results_.push_back(result);
    return static_cast<std::byte*>(result.memory());
  }

 private:
  void check(const Tensor& result, const Tensor& first, std::size_t pair) const {
    const std::string name =
        planner::name_of_pair(bound_.traits().kind, pair) + ": accumulation_fn returned ";
    if (!result) throw Error(ErrorCode::kInvalidArgument, name + "no tensor");
    if (result.dtype() != first.dtype() || result.shape() != first.shape()) {
      throw Error(ErrorCode::kInvalidArgument,
                  name + std::string(to_string(result.dtype())) + " " + result.shape().to_string() +
                      ", expected " + std::string(to_string(first.dtype())) + " " +
                      first.shape().to_string() + " as the components it was given");
    }
    api::engine_of(result.device());
  }

  const AccumulationFn& function_;
  const api::BoundCall& bound_;
  const api::Pairs& pairs_;
  std::vector<Tensor> results_;  // alive until they were copied out
};

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
  api::Session::Call call(*cluster.state().session, 0, api::deadline_of(options, start));
  call.join([&]() -> planner::Request { throw Error(error); });
  throw Error(error);
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
  const api::DenseCopies copies(traits, pairs, defaults);
  return call_unmixed(traits, copies.pairs(), options, api::key_of(traits, copies.pairs(), options, defaults),
                      start);
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_unmixed(const api::CallTraits& traits,
                                                         const api::Pairs& pairs,
                                                         const CommunicationOptions& options,
                                                         const api::CallKey& key, Clock::time_point start) {
  std::optional<api::MergeRows> merge;
  if (key.merges_rows) {
    merge.emplace(traits, pairs, options, planner.placement());
    merge->read_indices();
  }
  const api::Pairs run_pairs = merge ? merge->pairs() : pairs;
  const Fingerprint fingerprint =
      merge ? api::key_of(traits, run_pairs, options, cluster.state().defaults).fingerprint : key.fingerprint;
  api::BoundCall& bound = cached(traits, run_pairs, options, fingerprint);
  std::vector<Mirrored> results;
  if (!traits.into) results = bound.make_results(run_pairs);
  bound.set_addresses(run_pairs, results);
  execute(bound, run_pairs, options, start);
  if (merge) results = merge->finish(std::move(results), api::deadline_of(options, start));
  record(bound, start);
  return results;
}

planner::Planned CrossDeviceOps::Impl::plan_call(const api::CallTraits& traits, const api::Pairs& pairs,
                                                 const CommunicationOptions& options) {
  planner::validate_options(traits.op, options);
  const Device& defaults = cluster.state().defaults;
  const api::CallKey key = api::key_of(traits, pairs, options, defaults);
  if (!key.mixes_dense_and_sparse) return plan_unmixed(traits, pairs, options, key.merges_rows);
  const api::DenseCopies copies(traits, pairs, defaults);
  return plan_unmixed(traits, copies.pairs(), options, key.merges_rows);
}

planner::Planned CrossDeviceOps::Impl::plan_unmixed(const api::CallTraits& traits, const api::Pairs& pairs,
                                                    const CommunicationOptions& options, bool merges_rows) {
  const Device& defaults = cluster.state().defaults;
  if (!merges_rows) return planner.plan(api::describe(traits, pairs, options, defaults));
  const api::MergeRows merge(traits, pairs, options, planner.placement());
  planner::Planned planned = planner.plan(api::describe(traits, merge.pairs(), options, defaults));
  merge.explain_in(planned);
  return planned;
}

api::BoundCall& CrossDeviceOps::Impl::cached(const api::CallTraits& traits, const api::Pairs& pairs,
                                             const CommunicationOptions& options,
                                             const Fingerprint& fingerprint) {
  const auto found = cache_.find(fingerprint);
  if (found == cache_.end()) return keep(fingerprint, bind(traits, pairs, options, now()));
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
                                                           const CommunicationOptions& options,
                                                           Clock::time_point start) {
  if (api::Session* session = cluster.state().session.get()) {
    api::Session::Call call(*session, 0, api::deadline_of(options, start));
    api::JointCall joint = call.join([&] {
      refuse_what_needs_one_process(api::key_of(traits, pairs, options, cluster.state().defaults));
      return own_request(traits, pairs, options);
    });
    return call.alike([&] { return bind_joint(traits, std::move(joint)); });
  }
  planner::Planned planned = planner.plan(api::describe(traits, pairs, options, cluster.state().defaults));
  if (is_logged(LogLevel::kDebug)) {
    for (const planner::Choice& choice : planned.choices) {
      log(LogLevel::kDebug, choice.algorithm + ": " + choice.reason);
    }
  }
  warn_of_nccl(traits.kind, planned);
  return std::make_unique<api::BoundCall>(traits, std::move(planned), exec::Site{api::host_engine()});
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

std::unique_ptr<api::BoundCall> CrossDeviceOps::Impl::bind_joint(const api::CallTraits& traits,
                                                                 api::JointCall joint) {
  api::Session& session = *cluster.state().session;
  planner::Planned planned = planner.plan(joint.request);
  warn_of_nccl(traits.kind, planned);
  std::string text = joint.words->text;
  return std::make_unique<api::BoundCall>(
      traits, std::move(planned), session.site(api::host_engine()),
      api::Crossed{&session.transport(), joint.fingerprint, std::move(text),
                   api::Session::KnownCall(session, std::move(joint.words))});
}

void CrossDeviceOps::Impl::refuse_what_needs_one_process(const api::CallKey& key) const {
  const char* what = key.merges_rows   ? "merging duplicate rows"
                     : accumulation_fn ? "an accumulation_fn"
                                       : nullptr;
  if (what == nullptr) return;
  throw Error(ErrorCode::kUnimplemented,
              std::string(what) + " is not available yet where workers are processes of their own");
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_with_others(const api::CallTraits& traits,
                                                             const api::Pairs& pairs,
                                                             const CommunicationOptions& options,
                                                             Clock::time_point start) {
  const Device& defaults = cluster.state().defaults;
  const api::CallKey key = api::key_of(traits, pairs, options, defaults);
  // What others bring to a concatenation, or mix, is known only when they have said so.
  const bool is_sized_by_all = key.has_sparse || key.mixes_dense_and_sparse || pairs.size() == 0 ||
                               traits.kind == planner::CallKind::kGather;
  const auto known = is_sized_by_all ? cache_.end() : cache_.find(key.fingerprint);
  const bool is_known = known != cache_.end();
  api::Session::Call call(*cluster.state().session,
                          is_known ? known->second.bound->crossed().known_call.number() : 0,
                          api::deadline_of(options, start));
  std::optional<api::DenseCopies> copies;
  api::BoundCall* bound = is_known ? known->second.bound.get() : nullptr;
  if (is_known) {
    known->second.last_used = ++uses_;
  } else {
    api::JointCall joint = call.join([&] {
      refuse_what_needs_one_process(key);
      if (key.mixes_dense_and_sparse) copies.emplace(traits, pairs, defaults);
      return own_request(traits, copies ? copies->pairs() : pairs, options);
    });
    if (pairs.size() == 0) return {};
    bound = &bound_with_others(traits, std::move(joint), key.fingerprint, is_sized_by_all, call);
  }
  call.set_text(bound->crossed().text);
  const api::Pairs& run_pairs = copies ? copies->pairs() : pairs;
  std::vector<Mirrored> results;
  try {
    if (!traits.into) results = bound->make_results(run_pairs);
    bound->set_addresses(run_pairs, results);
  } catch (...) {
    call.end_after(std::current_exception());
  }
  record(*bound, start, call.run(bound->instance(), bound->crossed().fingerprint, bound->bytes()));
  return results;
}

// Calls that are told every time are kept by what all said, and by what is this process's own affair.
api::BoundCall& CrossDeviceOps::Impl::bound_with_others(const api::CallTraits& traits, api::JointCall joint,
                                                        const Fingerprint& own, bool is_sized_by_all,
                                                        api::Session::Call& call) {
  Hasher both;
  for (const Fingerprint& part : {joint.fingerprint, own}) {
    both.add(part.low);
    both.add(part.high);
  }
  const Fingerprint kept_as = is_sized_by_all ? both.finish() : own;
  const auto found = cache_.find(kept_as);
  if (found != cache_.end()) {
    found->second.last_used = ++uses_;
    return *found->second.bound;
  }
  return keep(kept_as, call.alike([&] { return bind_joint(traits, std::move(joint)); }));
}

void CrossDeviceOps::Impl::warn_of_nccl(planner::CallKind kind, const planner::Planned& planned) {
  const planner::Policy& policy = planner.policy();
  const auto names_nccl = [](const AllReduceSpec& spec) { return planner::has_level(spec, "nccl"); };
  if (kind != planner::CallKind::kReduce && kind != planner::CallKind::kBatchReduce) return;
  if (std::ranges::none_of(policy.specs, names_nccl)) return;
  const auto other = std::ranges::find_if(planned.devices, [](const Device& d) { return d.type() != "GPU"; });
  if (other == planned.devices.end() || warned_of_nccl_.test_and_set(std::memory_order_relaxed)) return;
  log(LogLevel::kWarning, policy.name + ": NCCL serves GPUs only, and there are other devices (" +
                              other->to_string() + "); the host engine's reduce takes its place");
}

void CrossDeviceOps::Impl::forget_oldest() {
  const auto older = [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; };
  cache_.erase(std::min_element(cache_.begin(), cache_.end(), older));
}

void CrossDeviceOps::Impl::run(api::BoundCall& bound, const api::Pairs& pairs,
                               const CommunicationOptions& options, Clock::time_point start) {
  if (api::Session* session = cluster.state().session.get()) {
    const api::Crossed& crossed = bound.crossed();
    api::Session::Call call(*session, crossed.known_call.number(), api::deadline_of(options, start));
    call.set_text(crossed.text);
    record(bound, start, call.run(bound.instance(), crossed.fingerprint, bound.bytes()));
    return;
  }
  execute(bound, pairs, options, start);
  record(bound, start);
}

void CrossDeviceOps::Impl::execute(api::BoundCall& bound, const api::Pairs& pairs,
                                   const CommunicationOptions& options, Clock::time_point start) {
  const Clock::time_point deadline = api::deadline_of(options, start);
  if (accumulation_fn) {
    AccumulationCaller caller(accumulation_fn, bound, pairs);
    bound.run(deadline, &caller);
  } else {
    bound.run(deadline, nullptr);
  }
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

Pairs ValuesAndResults::pairs() const {
  return {values.size(), this, [](const void* self, std::size_t i) {
            const auto& arguments = *static_cast<const ValuesAndResults*>(self);
            return Pair{&arguments.values[i], {}, &arguments.results[i]};
          }};
}

void check_lengths(const ValuesAndResults& arguments) {
  if (arguments.values.size() == arguments.results.size()) return;
  throw Error(ErrorCode::kInvalidArgument, std::to_string(arguments.values.size()) + " values and " +
                                               std::to_string(arguments.results.size()) +
                                               " results; expected a result for every value");
}

Pairs pairs_of(const std::span<const ValueDestination>& pairs) {
  return {pairs.size(), &pairs, [](const void* span, std::size_t i) {
            const ValueDestination& pair = (*static_cast<const std::span<const ValueDestination>*>(span))[i];
            return pair_of(pair.value, pair.destination);
          }};
}

}  // namespace api
}  // namespace onesum
