#include "support/tensors.h"

namespace onesum::testing {

std::vector<std::string> cpus(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

std::string full_name(std::size_t index) {
  return "/job:localhost/replica:0/task:0/device:CPU:" + std::to_string(index);
}

Tensor on_host(const Tensor& tensor) {
  return tensor.device().type() == "GPU" ? tensor.copied_to("CPU:0") : tensor;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const Tensor here = on_host(tensor);
  const auto* const memory = static_cast<const std::byte*>(here.memory());
  return {memory, memory + here.bytes()};
}

Tensor filled_with(int byte, DType dtype, const Shape& shape, const Device& device) {
  std::vector<std::byte> bytes(shape.elements() * size_of(dtype), static_cast<std::byte>(byte));
  return Tensor::borrow(bytes.data(), dtype, shape, "CPU:0").copied_to(device);
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
    tensors.push_back(filled_with(0xa5, result_dtype(op, model.dtype()), model.shape(), device));
  }
  return PerReplica(std::move(tensors));
}

std::vector<ValueDestination> one_pair(const PerReplica& value, const Destination& destination) {
  return {{value, destination}};
}

std::vector<ValueDestination> to_own_devices(const std::vector<PerReplica>& values) {
  std::vector<ValueDestination> pairs;
  pairs.reserve(values.size());
  for (const PerReplica& value : values) pairs.push_back({value, value});
  return pairs;
}

}  // namespace onesum::testing
