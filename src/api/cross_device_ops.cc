#include <algorithm>
#include <string>
#include <utility>

#include <onesum/cross_device_ops.h>
#include <onesum/error.h>

#include "api/collective.h"
#include "api/cross_device_ops_impl.h"
#include "api/explain.h"
#include "api/prepared_reduce.h"
#include "api/replica_context.h"
#include "api/work.h"
#include "planner/policy.h"

namespace onesum {
namespace {

using api::Pair;
using api::Pairs;
using planner::CallKind;

// One value to one destination, as a batch of one.
struct OnePair {
  Pair pair;
  Pairs pairs() const {
    return {1, this, [](const void* self, std::size_t) { return static_cast<const OnePair*>(self)->pair; }};
  }
};

// Side by side, as they are.
struct ValuesAndResults {
  std::span<const PerReplica> values;
  std::span<const PerReplica> results;

  Pairs pairs() const {  // refers to this object
    return {values.size(), this, [](const void* self, std::size_t i) {
              const auto& arguments = *static_cast<const ValuesAndResults*>(self);
              return Pair{&arguments.values[i], {}, &arguments.results[i]};
            }};
  }

  void check_lengths() const {
    if (values.size() == results.size()) return;
    throw Error(ErrorCode::kInvalidArgument, std::to_string(values.size()) + " values and " +
                                                 std::to_string(results.size()) +
                                                 " results; expected a result for every value");
  }
};

planner::Request request_of(ReduceOp op, std::span<const ReduceSpec> specs, bool in_place,
                            const CommunicationOptions& options, const Device& defaults) {
  planner::Request request;
  request.op = op;
  request.into = in_place;
  request.only_planned = true;
  request.options = options;
  for (const ReduceSpec& spec : specs) {
    planner::PairInfo pair;
    pair.destinations = spec.destinations;
    for (const Device& device : spec.replicas)
      pair.replicas.push_back({{spec.dtype, spec.shape, device}, {}, {}});
    if (in_place) {
      for (const Device& device : spec.destinations) {
        pair.results.push_back({{spec.dtype, spec.shape, device}, {}, {}});
        const auto is_it = [&](const Device& other) {
          return other.canonical(defaults) == device.canonical(defaults);
        };
        const auto replica = std::find_if(spec.replicas.begin(), spec.replicas.end(), is_it);
        pair.in_place_of.push_back(
            replica == spec.replicas.end() ? -1 : static_cast<std::int32_t>(replica - spec.replicas.begin()));
      }
    }
    request.pairs.push_back(std::move(pair));
  }
  return request;
}

// Plans ask nobody.
std::string assumption_of(const Cluster& cluster) {
  if (!cluster.state().session) return "";
  return "assumed: each of the " + std::to_string(cluster.size()) +
         " workers calls as this one does, with as many replicas of the same types and shapes on its own "
         "devices\n";
}

Plan public_plan(const planner::Planned& planned) {
  std::vector<std::size_t> elements;
  for (const plan::PackTable& table : planned.tables) elements.push_back(table.elements());
  return Plan(planned.plan, std::move(elements), planned.devices);
}

}  // namespace

CrossDeviceOps::CrossDeviceOps(const planner::Policy& policy, AccumulationFn accumulation_fn,
                               const std::optional<Cluster>& cluster)
    : impl_(std::make_shared<Impl>(policy, std::move(accumulation_fn),
                                   cluster ? *cluster : Cluster::local())) {}

CrossDeviceOps::~CrossDeviceOps() = default;

Mirrored CrossDeviceOps::reduce(ReduceOp op, const PerReplica& value, const Destination& destination,
                                const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::reduce");
  const OnePair one{api::pair_of(value, destination)};
  return std::move(impl_->call({CallKind::kReduce, op, 0, false}, one.pairs(), options).front());
}

std::vector<Mirrored> CrossDeviceOps::batch_reduce(ReduceOp op, std::span<const ValueDestination> pairs,
                                                   const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::batch_reduce");
  return impl_->call({CallKind::kBatchReduce, op, 0, false}, api::pairs_of(pairs), options);
}

Mirrored CrossDeviceOps::broadcast(const Value& value, const Destination& destination, int root) {
  api::require_cross_replica_context("CrossDeviceOps::broadcast");
  if (root < 0 || root >= impl_->cluster.size()) {
    impl_->refuse(Error(ErrorCode::kInvalidArgument,
                        "broadcast from root " + std::to_string(root) + "; the cluster has " +
                            std::to_string(impl_->cluster.size()) + " worker(s)"),
                  {});
  }
  const PerReplica replica(std::vector<Value>{value});
  const OnePair one{api::pair_of(replica, destination)};
  return std::move(
      impl_->call({CallKind::kBroadcast, ReduceOp::kSum, 0, false, root}, one.pairs(), {}).front());
}

Mirrored CrossDeviceOps::gather(const PerReplica& value, const Destination& destination, int axis,
                                const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::gather");
  const OnePair one{api::pair_of(value, destination)};
  return std::move(
      impl_->call({CallKind::kGather, ReduceOp::kSum, axis, false}, one.pairs(), options).front());
}

void CrossDeviceOps::batch_reduce_into(ReduceOp op, std::span<const PerReplica> values,
                                       std::span<PerReplica> results, const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::batch_reduce_into");
  const ValuesAndResults arguments{values, results};
  try {
    planner::validate_options(op, options);
    arguments.check_lengths();
  } catch (const Error& error) {
    impl_->refuse(error, {});
  }
  impl_->call({CallKind::kBatchReduce, op, 0, true}, arguments.pairs(), options);
}

void CrossDeviceOps::run(const Collective& call, const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::run");
  try {
    impl_->check(call, options);
  } catch (const Error& error) {
    impl_->refuse(error, {});
  }
  impl_->call(api::traits_of(call), api::pairs_of(call), options);
}

Work CrossDeviceOps::start(Collective call, const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::start");
  return api::start_work(impl_->cluster, [impl = impl_, call = std::move(call), options, start = now()] {
    impl->refuse_if_late(options, start);
    try {
      impl->check(call, options);
    } catch (const Error& error) {
      impl->refuse_in_turn(error, options, start);
    }
    return impl->call_in_turn(api::traits_of(call), api::pairs_of(call), options, start);
  });
}

Work CrossDeviceOps::batch_reduce_async(ReduceOp op, std::span<const ValueDestination> pairs,
                                        const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::batch_reduce_async");
  std::vector<ValueDestination> kept(pairs.begin(), pairs.end());
  return api::start_work(impl_->cluster, [impl = impl_, op, kept = std::move(kept), options, start = now()] {
    if (!impl->cluster.state().session) planner::validate_options(op, options);
    impl->refuse_if_late(options, start);
    const std::span<const ValueDestination> view = kept;
    return impl->call_in_turn({CallKind::kBatchReduce, op, 0, false}, api::pairs_of(view), options, start);
  });
}

PreparedReduce CrossDeviceOps::prepare(ReduceOp op, std::span<const PerReplica> values,
                                       std::span<PerReplica> results, const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::prepare");
  return prepare(Collective::reduce(op, {values.begin(), values.end()}, {results.begin(), results.end()}),
                 options);
}

PreparedReduce CrossDeviceOps::prepare(Collective call, const CommunicationOptions& options) {
  api::require_cross_replica_context("CrossDeviceOps::prepare");
  return PreparedReduce(std::make_shared<PreparedReduce::State>(impl_, std::move(call), options));
}

Plan CrossDeviceOps::plan(ReduceOp op, std::span<const ValueDestination> pairs,
                          const CommunicationOptions& options) const {
  return public_plan(impl_->plan_call({CallKind::kBatchReduce, op, 0, false}, api::pairs_of(pairs), options));
}

Plan CrossDeviceOps::plan(ReduceOp op, std::span<const ReduceSpec> specs, bool in_place,
                          const CommunicationOptions& options) const {
  return public_plan(
      impl_->planner.plan(request_of(op, specs, in_place, options, impl_->cluster.state().defaults)));
}

Plan CrossDeviceOps::plan(const Collective& call, const CommunicationOptions& options) const {
  api::check(call, impl_->planner.policy(), impl_->cluster.size());
  return public_plan(impl_->plan_call(api::traits_of(call), api::pairs_of(call), options));
}

Plan CrossDeviceOps::plan(const CollectiveSpec& spec, const CommunicationOptions& options) const {
  return public_plan(impl_->planner.plan(api::request_of(spec, options)));
}

std::string CrossDeviceOps::explain(ReduceOp op, std::span<const ValueDestination> pairs,
                                    const CommunicationOptions& options) const {
  const planner::Planned planned =
      impl_->plan_call({CallKind::kBatchReduce, op, 0, false}, api::pairs_of(pairs), options);
  return assumption_of(impl_->cluster) + api::explain(planned, impl_->planner, options);
}

std::string CrossDeviceOps::explain(ReduceOp op, std::span<const ReduceSpec> specs, bool in_place,
                                    const CommunicationOptions& options) const {
  return api::explain(
      impl_->planner.plan(request_of(op, specs, in_place, options, impl_->cluster.state().defaults)),
      impl_->planner, options);
}

std::string CrossDeviceOps::explain(const Collective& call, const CommunicationOptions& options) const {
  api::check(call, impl_->planner.policy(), impl_->cluster.size());
  const planner::Planned planned = impl_->plan_call(api::traits_of(call), api::pairs_of(call), options);
  return assumption_of(impl_->cluster) + api::explain(planned, impl_->planner, options);
}

std::string CrossDeviceOps::explain(const CollectiveSpec& spec, const CommunicationOptions& options) const {
  return api::explain(impl_->planner.plan(api::request_of(spec, options)), impl_->planner, options);
}

CallReport CrossDeviceOps::last_call() const { return impl_->report(); }

const Cluster& CrossDeviceOps::cluster() const noexcept { return impl_->cluster; }

}  // namespace onesum
