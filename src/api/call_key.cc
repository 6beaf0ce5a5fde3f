#include "api/call_key.h"

#include <variant>

#include "api/tensor_state.h"

namespace onesum::api {
namespace {

void add_tensor(Hasher& hasher, const Tensor& tensor) noexcept {
  const Tensor::State* state = tensor.state();
  hasher.add(state == nullptr ? 0 : state->signature);
}

void add_shape(Hasher& hasher, const std::optional<Shape>& shape) noexcept {
  hasher.add(shape ? shape->rank() + 1 : 0);
  if (!shape) return;
  for (const std::int64_t extent : shape->extents()) hasher.add(static_cast<std::uint64_t>(extent));
}

// Returns whether it is sparse.
bool add_component(Hasher& hasher, const Value& component) noexcept {
  if (const auto* tensor = std::get_if<Tensor>(&component)) {
    add_tensor(hasher, *tensor);
    return false;
  }
  const auto& slices = *std::get_if<IndexedSlices>(&component);
  hasher.add(~std::uint64_t{0});  // no signature: what follows is slices
  add_tensor(hasher, slices.values);
  add_tensor(hasher, slices.indices);
  add_shape(hasher, slices.dense_shape);
  return true;
}

// Returns how many components are sparse.
std::size_t add_components(Hasher& hasher, const DistributedValues& values) noexcept {
  std::size_t sparse = 0;
  hasher.add(values.size());
  for (const Value& component : values.values()) sparse += add_component(hasher, component) ? 1 : 0;
  return sparse;
}

// Of a result in place everything is known but which replica it is.
void add_results(Hasher& hasher, const Pair& pair, const Device& defaults) {
  hasher.add(pair.results->size());
  for (std::size_t d = 0; d < pair.results->size(); ++d) {
    const Value& result = pair.results->values()[d];
    const int replica = in_place_replica(*pair.value, result, d, defaults);
    hasher.add(static_cast<std::uint64_t>(replica) + 1);
    if (replica < 0) add_component(hasher, result);
  }
}

// Where a result shares memory with a replica, by how much it is moved.
void add_displacements(Hasher& hasher, const Pair& pair) {
  const auto memory_of = [](const Value& value) -> const Tensor::State* {
    const auto* tensor = std::get_if<Tensor>(&value);
    return tensor == nullptr ? nullptr : tensor->state();
  };
  for (const Value& result : pair.results->values()) {
    const Tensor::State* const to = memory_of(result);
    for (const Value& replica : pair.value->values()) {
      const Tensor::State* const from = memory_of(replica);
      if (from == nullptr || to == nullptr) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(from->memory);
      const auto other = reinterpret_cast<std::uintptr_t>(to->memory);
      const bool is_apart = begin + from->bytes <= other || other + to->bytes <= begin;
      hasher.add(is_apart ? 1 : 0);
      hasher.add(is_apart ? 0 : other - begin);
    }
  }
}

// Calls that have parts: what is in place depends on where the parts lie.
void add_parts(Hasher& hasher, const Pair& pair) {
  add_components(hasher, *pair.results);
  add_displacements(hasher, pair);
  hasher.add(pair.splits.size());
  for (const std::vector<std::size_t>& split : pair.splits) {
    hasher.add(split.size());
    for (const std::size_t elements : split) hasher.add(elements);
  }
}

}  // namespace

CallKey key_of(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
               const Device& defaults) {
  CallKey key;
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(traits.kind) | static_cast<std::uint64_t>(traits.op) << 8 |
             static_cast<std::uint64_t>(traits.into) << 16 |
             static_cast<std::uint64_t>(options.implementation) << 24 |
             static_cast<std::uint64_t>(options.numerics) << 32 |
             static_cast<std::uint64_t>(options.sparse_rows) << 40 |
             static_cast<std::uint64_t>(traits.has_equal_parts) << 48);
  hasher.add(static_cast<std::uint64_t>(traits.axis));
  hasher.add(static_cast<std::uint64_t>(traits.root));
  hasher.add(static_cast<std::uint64_t>(traits.receiver));
  hasher.add(options.bytes_per_pack);
  hasher.add(pairs.size());
  bool has_sparse = false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair pair = pairs[i];
    const std::size_t sparse = add_components(hasher, *pair.value);
    has_sparse |= sparse != 0 && sparse == pair.value->size();
    key.mixes_dense_and_sparse |= sparse != 0 && sparse != pair.value->size();
    hasher.add(pair.declared_dtype ? static_cast<std::uint64_t>(*pair.declared_dtype) + 1 : 0);
    if (planner::has_parts(traits.kind)) {
      add_parts(hasher, pair);
    } else if (pair.results != nullptr) {
      add_results(hasher, pair, defaults);
    } else {
      hasher.add(2 * pair.destinations.size() + (pair.destination_is_text ? 1 : 0));
      for (const Device& device : pair.destinations) hasher.add(device.hash());
    }
  }
  key.merges_rows =
      has_sparse && options.sparse_rows == SparseRows::kMergeDuplicates &&
      (traits.kind == planner::CallKind::kReduce || traits.kind == planner::CallKind::kBatchReduce);
  key.has_sparse = has_sparse;
  key.fingerprint = hasher.finish();
  return key;
}

}  // namespace onesum::api
