#include <algorithm>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include <onesum/error.h>
#include <onesum/strategy.h>

#include "api/cluster_state.h"
#include "api/engines.h"
#include "api/replica_call.h"
#include "api/replica_context.h"
#include "api/replica_run.h"
#include "api/replica_threads.h"

namespace onesum {
namespace {

using api::thread_context;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::vector<std::string> default_devices() {
  std::vector<std::string> names;
  if (const engine::GpuSearch& found = api::gpus(); found.platform != nullptr) {
    for (int index = 0; index < found.platform->devices(); ++index)
      names.push_back(fmt::format("GPU:{}", index));
    return names;
  }
  for (unsigned index = 0; index < api::host_engine().threads(); ++index)
    names.push_back(fmt::format("CPU:{}", index));
  return names;
}

std::vector<Device> completed(std::span<const std::string> names, const Device& defaults) {
  std::vector<Device> devices;
  for (const std::string& name : names) {
    const Device given = Device::parse(name);
    if (given.is_empty())
      refuse("MirroredStrategy: device {} is empty; expected one such as CPU:0", devices.size());
    const Device device = given.canonical(defaults);
    const auto same = std::ranges::find(devices, device) - devices.begin();
    if (same < std::ssize(devices)) {
      refuse(
          "MirroredStrategy: devices {} (\"{}\") and {} (\"{}\") are both {}; every replica needs one of its "
          "own",
          same, names[same], devices.size(), name, device.to_string());
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace

struct MirroredStrategy::Impl {
  std::shared_ptr<CrossDeviceOps> ops;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<ReplicaContext>> replicas;

  std::mutex turn;                             // of runs
  std::optional<api::ReplicaThreads> threads;  // since the first run
};

MirroredStrategy::MirroredStrategy(std::vector<std::string> devices,
                                   std::shared_ptr<CrossDeviceOps> cross_device_ops)
    : impl_(std::make_unique<Impl>()) {
  if (devices.empty()) devices = default_devices();
  impl_->ops = cross_device_ops ? std::move(cross_device_ops) : std::make_shared<ReductionToOneDevice>();
  impl_->devices = completed(devices, impl_->ops->cluster().state().defaults);
  for (int id = 0; id < num_replicas(); ++id) {
    impl_->replicas.push_back(std::unique_ptr<ReplicaContext>(new ReplicaContext(*this, id)));
  }
}

MirroredStrategy::~MirroredStrategy() = default;

std::span<const Device> MirroredStrategy::devices() const noexcept { return impl_->devices; }

CrossDeviceOps& MirroredStrategy::cross_device_ops() const noexcept { return *impl_->ops; }

void MirroredStrategy::run_replicas(const std::function<void(ReplicaContext&)>& fn) {
  api::require_cross_replica_context("MirroredStrategy::run");
  const api::ReplicaRun* enclosing = thread_context.run;
  if (enclosing != nullptr && enclosing->is_inside(*this)) {
    refuse(
        "MirroredStrategy::run was called inside merge_call of a run of the same strategy, whose replicas "
        "wait for "
        "it: return from merge_call first");
  }
  const std::lock_guard turn(impl_->turn);
  if (!impl_->threads) impl_->threads.emplace(num_replicas());
  api::ReplicaRun run(*this, enclosing);
  impl_->threads->run([&](int id) { run.run_replica(*impl_->replicas[id], fn); });
  run.rethrow();
}

PerReplica MirroredStrategy::per_replica(std::vector<Value> results) const {
  for (std::size_t replica = 0; replica < results.size(); ++replica) {
    if (!api::is_on(devices()[replica], results[replica])) {
      api::refuse_value(devices()[replica], results[replica],
                        fmt::format("what replica {} returned to MirroredStrategy::run", replica));
    }
  }
  return PerReplica(std::move(results));
}

Mirrored MirroredStrategy::reduce(ReduceOp op, const PerReplica& value, const CommunicationOptions& options) {
  api::require_cross_replica_context("MirroredStrategy::reduce");
  // Where workers are processes of their own, each gets the result on its own host.
  const bool has_others = impl_->ops->cluster().state().session != nullptr;
  const std::string host = has_others ? "CPU:0" : devices().front().host().to_string();
  return impl_->ops->reduce(op, value, host, options);
}

StrategyScope MirroredStrategy::scope() const {
  api::require_cross_replica_context("MirroredStrategy::scope");
  return StrategyScope(*this);
}

StrategyScope::StrategyScope(const MirroredStrategy& strategy) : before_(thread_context.scope) {
  if (before_ != nullptr && before_ != &strategy) {
    refuse(
        "MirroredStrategy::scope: this thread is in the scope of another strategy; variables can be mirrored "
        "by one "
        "strategy only");
  }
  thread_context.scope = &strategy;
}

StrategyScope::~StrategyScope() { thread_context.scope = before_; }

Mirrored StrategyExtended::reduce_to(ReduceOp op, const PerReplica& value, const Destination& destination,
                                     const CommunicationOptions& options) {
  api::require_cross_replica_context("StrategyExtended::reduce_to");
  return strategy_->cross_device_ops().reduce(op, value, destination, options);
}

std::vector<Mirrored> StrategyExtended::batch_reduce_to(ReduceOp op, std::span<const ValueDestination> pairs,
                                                        const CommunicationOptions& options) {
  api::require_cross_replica_context("StrategyExtended::batch_reduce_to");
  return strategy_->cross_device_ops().batch_reduce(op, pairs, options);
}

Mirrored StrategyExtended::broadcast_to(const Value& value, const Destination& destination) {
  api::require_cross_replica_context("StrategyExtended::broadcast_to");
  return strategy_->cross_device_ops().broadcast(value, destination);
}

}  // namespace onesum
