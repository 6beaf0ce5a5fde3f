// For tests: tensors on devices of this process, and what is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <onesum/cross_device_ops.h>

namespace onesum::testing {

inline constexpr DType kSummable[] = {
    DType::kUInt8,   DType::kInt8,    DType::kUInt16,    DType::kInt16,      DType::kUInt32,
    DType::kInt32,   DType::kUInt64,  DType::kInt64,     DType::kFloat16,    DType::kBFloat16,
    DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128,
};

// "CPU:0" … "CPU:n-1"
std::vector<std::string> cpus(std::size_t count);

// The full form of CPU:index.
std::string full_name(std::size_t index);

// A vector, or a tensor of any shape.
template <class T>
Tensor vector_of(const std::vector<T>& values, const Device& device) {
  return Tensor::from<T>(std::span<const T>(values), {static_cast<std::int64_t>(values.size())}, device);
}

template <class T>
Tensor scalar(T value, const Device& device) {
  return Tensor::from<T>({value}, {}, device);
}

// Replica i holds the scalar values[i], on CPU:i.
template <class T>
PerReplica scalars(const std::vector<T>& values) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i) tensors.push_back(scalar<T>(values[i], cpus(i + 1).back()));
  return PerReplica(std::move(tensors));
}

// Replica i holds the vector values[i], on CPU:i.
template <class T>
PerReplica vectors(const std::vector<std::vector<T>>& values) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i)
    tensors.push_back(vector_of<T>(values[i], cpus(i + 1).back()));
  return PerReplica(std::move(tensors));
}

// The tensor itself if the host can read it, else a copy.
Tensor on_host(const Tensor& tensor);

// Of a tensor on any device, as is what is below.
template <class T>
std::vector<T> contents(const Tensor& tensor) {
  const Tensor here = on_host(tensor);
  const auto data = here.data<T>();
  return {data.begin(), data.end()};
}

std::vector<std::byte> bytes_of(const Tensor& tensor);

// A tensor whose bytes are all this one.
Tensor filled_with(int byte, DType dtype, const Shape& shape, const Device& device);

// Rows at indices, on one device.
IndexedSlices slices(const std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& indices,
                     std::optional<Shape> dense_shape, const Device& device);

// The devices of a value, complete.
std::vector<Device> devices_of(const DistributedValues& values);

// A result as large as `value` on each of `devices`, its bytes set to 0xa5.
PerReplica blank_results(ReduceOp op, const PerReplica& value, const std::vector<std::string>& devices);

std::vector<ValueDestination> one_pair(const PerReplica& value, const Destination& destination);

// Each value with itself as its destination.
std::vector<ValueDestination> to_own_devices(const std::vector<PerReplica>& values);

}  // namespace onesum::testing
