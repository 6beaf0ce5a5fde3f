#include "api/dense_copies.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <variant>

#include <onesum/error.h>

#include "api/sparse.h"

namespace onesum::api {
namespace {

bool is_sparse(const Value& value) { return std::holds_alternative<IndexedSlices>(value); }

bool is_mixed(const DistributedValues& value) {
  const auto sparse = std::count_if(value.values().begin(), value.values().end(), is_sparse);
  return sparse != 0 && static_cast<std::size_t>(sparse) != value.size();
}

const Tensor& tensor_of(const Value& value, const std::string& name) {
  const Tensor& tensor = is_sparse(value) ? std::get<IndexedSlices>(value).values : std::get<Tensor>(value);
  if (!tensor) throw Error(ErrorCode::kInvalidArgument, name + " refers to no tensor");
  return tensor;
}

void check_slices_fit(const IndexedSlices& slices, const Shape& dense, const std::string& name) {
  bool fits =
      slices.values.shape().rank() == dense.rank() && (!slices.dense_shape || *slices.dense_shape == dense);
  for (std::size_t a = 1; fits && a < dense.rank(); ++a) fits = slices.values.shape()[a] == dense[a];
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument,
              name + ": slices with values of shape " + slices.values.shape().to_string() +
                  (slices.dense_shape ? " and dense shape " + slices.dense_shape->to_string() : "") +
                  " meet dense replicas of shape " + dense.to_string());
}

PerReplica densified(const DistributedValues& value, ReduceOp op, const std::string& pair,
                     const Device& defaults) {
  const Value& dense = *std::find_if_not(value.values().begin(), value.values().end(), is_sparse);
  const Tensor& model = tensor_of(dense, pair + ": a replica");
  const DType type = densified_dtype(op, model.dtype());
  std::vector<Value> components;
  for (std::size_t r = 0; r < value.size(); ++r) {
    const std::string name = pair + ": replica " + std::to_string(r);
    const Tensor& tensor = tensor_of(value.value(r), name);
    if (tensor.dtype() != model.dtype()) {
      throw Error(ErrorCode::kInvalidArgument,
                  name + " is of " + std::string(to_string(tensor.dtype())) + ", another one of " +
                      std::string(to_string(model.dtype())) + "; all replicas must be of one type");
    }
    if (const auto* slices = std::get_if<IndexedSlices>(&value.value(r))) {
      check_slices(*slices, name, defaults);
      check_slices_fit(*slices, model.shape(), name);
      components.emplace_back(densify(*slices, model.shape(), type, name,
                                      op == ReduceOp::kMean ? Overflow::kRefused : Overflow::kWraps));
    } else {
      components.emplace_back(type == tensor.dtype() ? tensor : widened(tensor, type));
    }
  }
  return PerReplica(std::move(components));
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& tensor) { return static_cast<const std::byte*>(tensor.memory()); };
  if (a.bytes() == 0 || b.bytes() == 0) return false;
  return std::less<>()(begin(a), begin(b) + b.bytes()) && std::less<>()(begin(b), begin(a) + a.bytes());
}

// The tensors of a component.
std::vector<Tensor> tensors_of(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return {*tensor};
  const auto& slices = std::get<IndexedSlices>(value);
  return {slices.values, slices.indices};
}

bool overlap(const Value& a, const Value& b) {
  for (const Tensor& of_a : tensors_of(a)) {
    for (const Tensor& of_b : tensors_of(b)) {
      if (of_a && of_b && overlap(of_a, of_b)) return true;
    }
  }
  return false;
}

// The copies do not show it, but a result that lies on a replica they were made from would change that
// replica.
void refuse_results_on_replica(const CallTraits& traits, const Pairs& pairs, std::size_t mixed,
                               const Device& defaults) {
  const DistributedValues& value = *pairs[mixed].value;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const DistributedValues* results = pairs[i].results;
    for (std::size_t d = 0; results != nullptr && d < results->size(); ++d) {
      const int replaced = i == mixed ? in_place_replica(value, results->value(d), d, defaults) : -1;
      for (std::size_t r = 0; r < value.size(); ++r) {
        if (static_cast<int>(r) == replaced || !overlap(results->value(d), value.value(r))) continue;
        throw Error(
            ErrorCode::kInvalidArgument,
            planner::name_of_pair(traits.kind, i) + ": result " + std::to_string(d) + " and " +
                planner::name_of_pair(traits.kind, mixed) + ": replica " + std::to_string(r) +
                " share memory; a result may only be exactly the replica of its own pair on its own device");
      }
    }
  }
}

}  // namespace

DenseCopies::DenseCopies(const CallTraits& traits, const Pairs& pairs, const Device& defaults) {
  values_.reserve(pairs.size());  // the pairs point into it
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Pair pair = pairs[i];
    if (is_mixed(*pair.value)) {
      const std::string name = planner::name_of_pair(traits.kind, i);
      if (traits.kind == planner::CallKind::kGather) {
        throw Error(ErrorCode::kUnimplemented, name + ": gather takes tensors, not IndexedSlices");
      }
      refuse_results_on_replica(traits, pairs, i, defaults);
      const auto dense =
          std::find_if_not(pair.value->values().begin(), pair.value->values().end(), is_sparse);
      values_.push_back(densified(*pair.value, traits.op, name, defaults));
      pair.declared_dtype = std::get<Tensor>(*dense).dtype();
      pair.value = &values_.back();
    }
    pairs_.push_back(pair);
  }
}

}  // namespace onesum::api
