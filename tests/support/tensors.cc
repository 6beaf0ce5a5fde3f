#include "support/tensors.h"

#include <cstring>

namespace onesum::testing {

std::vector<std::string> cpus(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

std::string full_name(std::size_t index) {
  return "/job:localhost/replica:0/task:0/device:CPU:" + std::to_string(index);
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const auto* const memory = static_cast<const std::byte*>(tensor.memory());
  return {memory, memory + tensor.bytes()};
}

IndexedSlices slices(const std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& indices,
                     std::optional<Shape> dense_shape, const Device& device) {
  std::vector<float> values;
  for (const std::vector<float>& row : rows) values.insert(values.end(), row.begin(), row.end());
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto width = rows.empty() ? std::int64_t{1} : static_cast<std::int64_t>(rows.front().size());
  return {Tensor::from<float>(std::span<const float>(values), {count, width}, device),
          Tensor::from<std::int64_t>(std::span<const std::int64_t>(indices), {count}, device),
          std::move(dense_shape)};
}

std::vector<Device> devices_of(const DistributedValues& values) {
  std::vector<Device> devices;
  for (const Device& device : values.devices()) devices.push_back(device.canonical());
  return devices;
}

PerReplica blank_results(ReduceOp op, const PerReplica& value, const std::vector<std::string>& devices) {
  std::vector<Tensor> tensors;
  for (const std::string& device : devices) {
    const Tensor& model = value.tensor(0);
    tensors.push_back(Tensor::empty(result_dtype(op, model.dtype()), model.shape(), device));
    if (tensors.back().bytes() > 0) std::memset(tensors.back().memory(), 0xa5, tensors.back().bytes());
  }
  return PerReplica(std::move(tensors));
}

std::vector<ValueDestination> one_pair(const PerReplica& value, const Destination& destination) {
  return {{value, destination}};
}

}  // namespace onesum::testing
