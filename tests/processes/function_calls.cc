#include "function_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace onesum::testing {

std::int32_t number_of(int replica, std::size_t element) {
  return static_cast<std::int32_t>(element % 1000) * 7 + replica;
}

PerReplica uneven_ints(const Side& side, std::int64_t elements) {
  return side.uneven([&](int replica, const Device& device) {
    Tensor tensor = Tensor::empty(DType::kInt32, {elements}, device);
    const std::span<std::int32_t> numbers = tensor.data<std::int32_t>();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number_of(replica, i);
    return tensor;
  });
}

std::int32_t chained(std::int32_t sum, std::int32_t next) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) * 3 + static_cast<std::uint32_t>(next));
}

Tensor chain(std::span<const Tensor> components) {
  Tensor result = Tensor::empty(DType::kInt32, components[0].shape(), components[0].device());
  const std::span<std::int32_t> sums = result.data<std::int32_t>();
  std::ranges::fill(sums, 0);
  for (const Tensor& component : components) {
    const std::span<const std::int32_t> numbers = component.data<std::int32_t>();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = chained(sums[i], numbers[i]);
  }
  return result;
}

std::vector<Mirrored> function_sums(const Side& side) {
  std::vector<Mirrored> all;
  for (const std::optional<std::string>& home :
       {std::optional<std::string>(), std::optional(own_device(side.workers - 1, 1))}) {
    ReductionToOneDevice ops(home, chain, side.cluster);
    for (const std::int64_t elements : {0, 1, 1009, 150001}) {
      const PerReplica value = uneven_ints(side, elements);
      all.push_back(ops.reduce(ReduceOp::kSum, value, Destination(value)));
      all.push_back(ops.reduce(ReduceOp::kMean, value, "CPU:1"));
      all.push_back(ops.reduce(ReduceOp::kSum, value, own_device(1, 0)));
    }
    std::vector<ValueDestination> pairs;
    for (const std::int64_t elements : {5, 100000, 0, 6, 100000}) {
      const PerReplica value = uneven_ints(side, elements);
      pairs.push_back({value, value});
    }
    for (int again = 0; again < 2; ++again) {
      for (Mirrored& result : ops.batch_reduce(ReduceOp::kSum, pairs)) all.push_back(std::move(result));
    }
  }
  return all;
}

}  // namespace onesum::testing
