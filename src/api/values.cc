#include <algorithm>
#include <string>
#include <utility>

#include <onesum/error.h>
#include <onesum/values.h>
#include <onesum/variable.h>

namespace onesum {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

[[noreturn]] void refuse_component(const char* kind, std::size_t replica, const char* why) {
  refuse(std::string(kind) + ": component " + std::to_string(replica) + why);
}

void check_component(const char* kind, std::size_t replica, const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    if (!*tensor) refuse_component(kind, replica, " is a Tensor that refers to nothing");
    return;
  }
  const auto& slices = std::get<IndexedSlices>(value);
  if (!slices.values) refuse_component(kind, replica, " has IndexedSlices whose values refer to nothing");
  if (!slices.indices) refuse_component(kind, replica, " has IndexedSlices whose indices refer to nothing");
}

std::vector<Value> checked(const char* kind, std::vector<Value> values) {
  if (values.empty()) refuse(std::string(kind) + ": no components; expected at least one");
  for (std::size_t replica = 0; replica < values.size(); ++replica)
    check_component(kind, replica, values[replica]);
  return values;
}

std::vector<Value> as_values(std::span<const Tensor> tensors) { return {tensors.begin(), tensors.end()}; }

std::vector<Device> checked_devices(const char* kind, std::vector<Device> devices) {
  if (devices.empty()) refuse(std::string("destination: ") + kind + " has no devices; expected at least one");
  return devices;
}

Device checked_device(std::string_view text) {
  Device device(text);
  if (device.is_empty()) refuse("destination: the device string is empty; expected one such as CPU:0");
  return device;
}

}  // namespace

const Device& device_of(const Value& value) {
  const auto* tensor = std::get_if<Tensor>(&value);
  return tensor != nullptr ? tensor->device() : std::get<IndexedSlices>(value).values.device();
}

const Value& DistributedValues::value(std::size_t replica) const {
  if (replica >= values_.size()) {
    if (!elsewhere_.empty()) {
      refuse("component " + std::to_string(replica) + " is on " +
             elsewhere_[std::min(replica - values_.size(), elsewhere_.size() - 1)].to_string() +
             ", a device of another process, which alone can read it");
    }
    refuse("component " + std::to_string(replica) + " of a value that has " + std::to_string(values_.size()));
  }
  return values_[replica];
}

const Tensor& DistributedValues::tensor(std::size_t replica) const {
  const auto* tensor = std::get_if<Tensor>(&value(replica));
  if (tensor == nullptr) {
    refuse("component " + std::to_string(replica) + " on " + device_of(value(replica)).to_string() +
           " is IndexedSlices; expected a dense Tensor");
  }
  return *tensor;
}

const IndexedSlices& DistributedValues::slices(std::size_t replica) const {
  const auto* slices = std::get_if<IndexedSlices>(&value(replica));
  if (slices == nullptr) {
    refuse("component " + std::to_string(replica) + " on " + device_of(value(replica)).to_string() +
           " is a dense Tensor; expected IndexedSlices");
  }
  return *slices;
}

std::vector<Device> DistributedValues::devices() const {
  std::vector<Device> devices;
  devices.reserve(values_.size() + elsewhere_.size());
  for (const Value& value : values_) devices.push_back(device_of(value));
  devices.insert(devices.end(), elsewhere_.begin(), elsewhere_.end());
  return devices;
}

Mirrored::Mirrored(std::vector<Value> values) : DistributedValues(checked("Mirrored", std::move(values))) {}

Mirrored::Mirrored(std::vector<Value> values, std::vector<Device> elsewhere)
    : DistributedValues(elsewhere.empty() ? checked("Mirrored", std::move(values)) : std::move(values)) {
  elsewhere_ = std::move(elsewhere);
}

Mirrored::operator const Tensor&() const {
  if (size() == 0) return tensor();  // refuses, naming where it is

  if (size() != 1) {
    refuse("a Mirrored of " + std::to_string(size()) +
           " components read as one Tensor; expected one component, or " + "tensor(i)");
  }
  return tensor();
}

PerReplica::PerReplica(std::vector<Value> values)
    : DistributedValues(checked("PerReplica", std::move(values))) {}

PerReplica::PerReplica(std::vector<Tensor> tensors)
    : DistributedValues(checked("PerReplica", as_values(tensors))) {}

PerReplica::PerReplica(Tensor tensor) : DistributedValues(checked("PerReplica", {std::move(tensor)})) {}

PerReplica::PerReplica(IndexedSlices slices)
    : DistributedValues(checked("PerReplica", {std::move(slices)})) {}

PerReplica::PerReplica(const Mirrored& mirrored)
    : DistributedValues(checked("PerReplica", {mirrored.values().begin(), mirrored.values().end()})) {}

PerReplica::PerReplica(const Variable& variable)
    : DistributedValues(checked("PerReplica", as_values(variable.components()))) {}

Destination::Destination(const DistributedValues& values)
    : devices_(checked_devices("the value", values.devices())) {}

Destination::Destination(const Variable& variable)
    : devices_(checked_devices("the variable", variable.devices())) {}

Destination::Destination(const Tensor& tensor) {
  if (!tensor) refuse("destination: a Tensor that refers to nothing; expected one on a device");
  devices_.push_back(tensor.device());
}

Destination::Destination(const IndexedSlices& slices) {
  if (!slices.values)
    refuse("destination: IndexedSlices whose values refer to nothing; expected them on a device");
  devices_.push_back(slices.values.device());
}

Destination::Destination(std::string_view device) : devices_{checked_device(device)}, is_text_(true) {}

Destination::Destination(const std::string& device) : Destination(std::string_view(device)) {}

Destination::Destination(const char* device) : Destination(std::string_view(device)) {}

}  // namespace onesum
