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

void check_slices_fit(const planner::ComponentInfo& slices, const Shape& dense, const std::string& name) {
  const Shape& values = slices.tensor.shape;
  bool fits = values.rank() == dense.rank() && (!slices.dense_shape || *slices.dense_shape == dense);
  for (std::size_t a = 1; fits && a < dense.rank(); ++a) fits = values[a] == dense[a];
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument,
              name + ": slices with values of shape " + values.to_string() +
                  (slices.dense_shape ? " and dense shape " + slices.dense_shape->to_string() : "") +
                  " meet dense replicas of shape " + dense.to_string());
}

void check_mixed(const planner::PairInfo& pair, const planner::TensorInfo& dense, const std::string& name) {
  for (std::size_t r = 0; r < pair.replicas.size(); ++r) {
    const planner::ComponentInfo& replica = pair.replicas[r];
    const std::string its = name + ": replica " + std::to_string(r);
    if (replica.tensor.dtype != dense.dtype) {
      throw Error(ErrorCode::kInvalidArgument,
                  its + " is of " + std::string(to_string(replica.tensor.dtype)) + ", another one of " +
                      std::string(to_string(dense.dtype)) + "; all replicas must be of one type");
    }
    if (replica.indices) check_slices_fit(replica, dense.shape, its);
  }
}

// What DenseCopies makes of the components of all workers.
void describe_anew(planner::PairInfo& pair, const MixedPair& mixed) {
  pair.declared_dtype = mixed.dtype;
  for (std::int32_t& replica : pair.in_place_of) {
    // A copy is not what the result replaces.
    const bool is_copied = replica >= 0 && (mixed.made_dense_as != mixed.dtype ||
                                            pair.replicas[static_cast<std::size_t>(replica)].indices);
    if (is_copied) replica = -1;
  }
  for (planner::ComponentInfo& replica : pair.replicas) {
    const Shape& shape = replica.indices ? mixed.shape : replica.tensor.shape;
    replica = {{mixed.made_dense_as, shape, replica.tensor.device}, {}, {}};
  }
}

PerReplica densified(const DistributedValues& value, const MixedPair& mixed, ReduceOp op,
                     const std::string& pair) {
  std::vector<Value> components;
  for (std::size_t r = 0; r < value.size(); ++r) {
    if (const auto* slices = std::get_if<IndexedSlices>(&value.value(r))) {
      components.emplace_back(densify(*slices, mixed.shape, mixed.made_dense_as,
                                      pair + ": replica " + std::to_string(r),
                                      op == ReduceOp::kMean ? Overflow::kRefused : Overflow::kWraps));
    } else {
      const auto& tensor = std::get<Tensor>(value.value(r));
      components.emplace_back(mixed.made_dense_as == mixed.dtype ? tensor
                                                                 : widened(tensor, mixed.made_dense_as));
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

std::vector<MixedPair> make_dense(planner::Request& request) {
  std::vector<MixedPair> all;
  for (std::size_t p = 0; p < request.pairs.size(); ++p) {
    planner::PairInfo& pair = request.pairs[p];
    const auto is_dense = [](const planner::ComponentInfo& replica) { return !replica.indices; };
    const auto dense = std::ranges::find_if(pair.replicas, is_dense);
    if (dense == pair.replicas.end() || std::ranges::all_of(pair.replicas, is_dense)) continue;
    const std::string name = planner::name_of_pair(request.kind, p);
    if (request.kind == planner::CallKind::kGather || planner::has_parts(request.kind)) {
      throw Error(ErrorCode::kUnimplemented, name + ": " + std::string(planner::name_of(request.kind)) +
                                                 " takes tensors, not IndexedSlices");
    }
    check_mixed(pair, dense->tensor, name);
    const DType dtype = dense->tensor.dtype;
    all.push_back({p, dense->tensor.shape, dtype, densified_dtype(request.op, dtype)});
    describe_anew(pair, all.back());
  }
  return all;
}

DenseCopies::DenseCopies(const CallTraits& traits, const Pairs& pairs, std::span<const MixedPair> mixed,
                         const Device& defaults) {
  values_.reserve(mixed.size());  // the pairs point into it
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs_.push_back(pairs[i]);
  for (const MixedPair& its : mixed) {
    refuse_results_on_replica(traits, pairs, its.pair, defaults);
    Pair& pair = pairs_[its.pair];
    values_.push_back(densified(*pair.value, its, traits.op, planner::name_of_pair(traits.kind, its.pair)));
    pair.declared_dtype = its.dtype;
    pair.value = &values_.back();
  }
}

}  // namespace onesum::api
