#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>
#include <onesum/strategy.h>
#include <onesum/variable.h>

#include "api/copies.h"
#include "api/replica_call.h"
#include "api/replica_context.h"

namespace onesum {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), tensor.shape().to_string());
}

void check_assignable(const std::string& name, const Tensor& from, const Tensor& to) {
  if (!from) refuse("variable '{}' was given a Tensor that refers to nothing", name);
  if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
    refuse("variable '{}' is {} and cannot be assigned {}", name, describe(to), describe(from));
  }
}

template <class Values>
auto find_on(const Device& device, const Values& values) {
  return std::ranges::find_if(values, [&](const auto& value) { return api::is_on(device, value); });
}

}  // namespace

struct Variable::State {
  State(std::string name_given, const Tensor& initial, std::span<const Device> devices, bool mirrored)
      : name(std::move(name_given)), is_mirrored(mirrored) {
    api::require_cross_replica_context("the constructor of variable '" + name + "'");
    if (!initial) refuse("variable '{}': its initial value is a Tensor that refers to nothing", name);
    if (devices.empty()) refuse("variable '{}' is mirrored on no devices; expected at least one", name);
    check_assignable(name, initial, initial);
    for (const Device& device : devices) {
      if (find_on(device.canonical(), components) != components.end()) {
        refuse("variable '{}' is mirrored on {} twice", name, device.to_string());
      }
      components.push_back(Tensor::empty(initial.dtype(), initial.shape(), device));
      api::copy(initial, components.back());
    }
  }

  // The component of a replica, which must have one.
  const Tensor& component_of(const ReplicaContext& replica) const {
    const auto own = find_on(replica.device(), components);
    if (own != components.end()) return *own;
    refuse(
        "variable '{}' has no component on {}, the device of replica {}; make variables in the strategy's "
        "scope",
        name, replica.device().to_string(), replica.replica_id());
  }

  // What the calling thread assigns to.
  std::span<const Tensor> assigned() const {
    const ReplicaContext* replica = api::current_replica();
    return replica != nullptr ? std::span(&component_of(*replica), 1) : std::span(components);
  }

  std::string name;
  bool is_mirrored;
  std::vector<Tensor> components;
};

Variable::Variable(std::string name, const Tensor& initial) {
  const MirroredStrategy* strategy = api::thread_context.scope;
  const Device own_device = initial ? initial.device() : Device();
  const auto devices = strategy != nullptr ? strategy->devices() : std::span(&own_device, 1);
  state_ = std::make_shared<State>(std::move(name), initial, devices, strategy != nullptr);
}

Variable::Variable(std::string name, const Tensor& initial, std::span<const Device> devices)
    : state_(std::make_shared<State>(std::move(name), initial, devices, true)) {}

MirroredVariable::MirroredVariable(std::string name, const Tensor& initial, std::span<const Device> devices)
    : Variable(std::move(name), initial, devices) {}

const std::string& Variable::name() const { return state_->name; }

bool Variable::is_mirrored() const { return state_->is_mirrored; }

std::span<const Tensor> Variable::components() const { return state_->components; }

std::vector<Device> Variable::devices() const {
  std::vector<Device> devices;
  devices.reserve(components().size());
  for (const Tensor& component : components()) devices.push_back(component.device());
  return devices;
}

const Tensor& Variable::value() const {
  const ReplicaContext* replica = api::current_replica();
  return replica != nullptr && is_mirrored() ? state_->component_of(*replica) : components().front();
}

void Variable::assign(const Tensor& value) {
  check_assignable(name(), value, components().front());
  for (const Tensor& component : state_->assigned()) api::copy(value, component);
}

void Variable::assign(const Mirrored& value) {
  const auto targets = state_->assigned();
  std::vector<const Tensor*> sources;
  for (const Tensor& target : targets) {
    const auto own = find_on(target.device().canonical(), value.values());
    if (own == value.values().end() && value.size() > 1) {
      refuse("variable '{}' has a component on {}, where the Mirrored given to it has none", name(),
             target.device().to_string());
    }
    const auto replica = own == value.values().end() ? 0 : own - value.values().begin();
    sources.push_back(&value.tensor(static_cast<std::size_t>(replica)));
    check_assignable(name(), *sources.back(), target);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) api::copy(*sources[i], targets[i]);
}

}  // namespace onesum
