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

planner::Placement placement_of(const Cluster& cluster, const planner::Policy& policy) {
  const Cluster::State& state = cluster.state();
  return {state.defaults, state.devices, state.workers, state.hosts, policy.all_workers};
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
      planner(policy, placement_of(on, policy), api::constants_in_force().values) {}

std::vector<Mirrored> CrossDeviceOps::Impl::call(const api::CallTraits& traits, const api::Pairs& pairs,
                                                 const CommunicationOptions& options) {
  const Clock::time_point start = now();
  planner::validate_options(traits.op, options);
  const cluster::Sequence::Turn turn(cluster.state().sequence, api::deadline_of(options, start));
  return call_in_turn(traits, pairs, options, start);
}

std::vector<Mirrored> CrossDeviceOps::Impl::call_in_turn(const api::CallTraits& traits,
                                                         const api::Pairs& pairs,
                                                         const CommunicationOptions& options,
                                                         Clock::time_point start) {
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
  auto found = cache_.find(fingerprint);
  if (found == cache_.end()) {
    std::unique_ptr<api::BoundCall> bound = bind(traits, pairs, options);
    if (cache_.size() >= kMaxBoundCalls) forget_oldest();
    found = cache_.emplace(fingerprint, Entry{std::move(bound), 0}).first;
  }
  found->second.last_used = ++uses_;
  return *found->second.bound;
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
  return std::make_unique<api::BoundCall>(traits, std::move(planned), api::host_engine());
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

void CrossDeviceOps::Impl::record(const api::BoundCall& bound, Clock::time_point start) {
  record_.add(bound.planned().plan, bound.tensors(), bound.bytes(), now() - start);
}

namespace api {

Clock::time_point deadline_of(const CommunicationOptions& options, Clock::time_point start) {
  if (!options.timeout) return start + kDefaultTimeout;
  const auto longest =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - start);
  return start + std::min(*options.timeout, longest);
}

void refuse_if_late(const CommunicationOptions& options, Clock::time_point start) {
  if (now() < deadline_of(options, start)) return;
  throw Error(ErrorCode::kDeadlineExceeded,
              "the call's timeout passed while it waited for earlier calls on the same cluster to finish");
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
