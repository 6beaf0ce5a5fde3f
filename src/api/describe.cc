#include "api/describe.h"

#include <variant>

#include <onesum/error.h>

#include "api/sparse.h"
#include "api/tensor_state.h"

namespace onesum::api {
namespace {

planner::TensorInfo info_of(const Tensor& tensor, const std::string& name) {
  if (!tensor) throw Error(ErrorCode::kInvalidArgument, name + " refers to no tensor");
  return {tensor.dtype(), tensor.shape(), tensor.device(),
          reinterpret_cast<std::uintptr_t>(tensor.state()->memory)};
}

planner::ComponentInfo component_of(const Value& value, const std::string& name, const Device& defaults) {
  planner::ComponentInfo component;
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    component.tensor = info_of(*tensor, name);
    return component;
  }
  const auto& slices = std::get<IndexedSlices>(value);
  component.tensor = info_of(slices.values, name + " (values)");
  component.indices = info_of(slices.indices, name + " (indices)");
  component.dense_shape = slices.dense_shape;
  check_slices(slices, name, defaults);
  return component;
}

planner::PairInfo pair_info(const Pair& pair, const std::string& name, const Device& defaults) {
  planner::PairInfo info;
  info.declared_dtype = pair.declared_dtype;
  info.splits.assign(pair.splits.begin(), pair.splits.end());
  for (std::size_t r = 0; r < pair.value->size(); ++r) {
    info.replicas.push_back(
        component_of(pair.value->value(r), name + ": replica " + std::to_string(r), defaults));
  }
  if (pair.results == nullptr) {
    info.destinations.assign(pair.destinations.begin(), pair.destinations.end());
    info.destination_is_text = pair.destination_is_text;
    return info;
  }
  for (std::size_t d = 0; d < pair.results->size(); ++d) {
    const Value& result = pair.results->value(d);
    info.results.push_back(component_of(result, name + ": result " + std::to_string(d), defaults));
    info.destinations.push_back(device_of(result));
    // Several replicas' slices are concatenated: none of them is the result.
    const bool can_replace = !info.results.back().indices || pair.value->size() == 1;
    info.in_place_of.push_back(can_replace ? in_place_replica(*pair.value, result, d, defaults) : -1);
  }
  return info;
}

// What identifies a component's memory.
struct Memory {
  const Tensor::State* values = nullptr;
  const Tensor::State* indices = nullptr;
};

Memory memory_of(const Value& value) noexcept {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return {tensor->state(), nullptr};
  const auto& slices = *std::get_if<IndexedSlices>(&value);
  return {slices.values.state(), slices.indices.state()};
}

bool is_same_tensor(const Tensor::State* a, const Tensor::State* b, const Device& defaults) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->memory != b->memory) return false;
  if (a->signature == b->signature) return true;
  // One device may be written in two ways.
  return a->dtype == b->dtype && a->shape == b->shape &&
         a->device.canonical(defaults) == b->device.canonical(defaults);
}

}  // namespace

planner::Request describe(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
                          const Device& defaults) {
  planner::Request request;
  request.kind = traits.kind;
  request.op = traits.op;
  request.axis = traits.axis;
  request.root = traits.root;
  request.has_equal_parts = traits.has_equal_parts;
  request.into = traits.into;
  request.options = options;
  planner::validate_options(request.op, request.options);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    request.pairs.push_back(pair_info(pairs[i], planner::name_of_pair(request.kind, i), defaults));
  }
  planner::validate_operation(request);
  return request;
}

int in_place_replica(const DistributedValues& value, const Value& result, std::size_t destination,
                     const Device& defaults) {
  const std::span<const Value> replicas = value.values();
  const Memory wanted = memory_of(result);
  const auto is_it = [&](std::size_t r) {
    const Memory memory = memory_of(replicas[r]);
    return is_same_tensor(memory.values, wanted.values, defaults) &&
           is_same_tensor(memory.indices, wanted.indices, defaults);
  };
  if (destination < replicas.size() && is_it(destination)) return static_cast<int>(destination);
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    if (is_it(r)) return static_cast<int>(r);
  }
  return -1;
}

}  // namespace onesum::api
