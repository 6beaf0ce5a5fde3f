#include "conformance/ways.h"

#include <algorithm>

#include "support/tensors.h"

namespace onesum::testing {
namespace {

Tensor blank(ReduceOp op, const Tensor& like) {
  return filled_with(0x5a, result_dtype(op, like.dtype()), like.shape(), like.device());
}

PerReplica results_for(ReduceOp op, const PerReplica& value, Way way) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < value.size(); ++r) {
    const bool in_place = way != Way::kInto && (way != Way::kPartlyInPlace || r % 2 == 1);
    tensors.push_back(in_place ? value.tensor(r) : blank(op, value.tensor(r)));
  }
  if (way == Way::kInPlacePermuted) std::reverse(tensors.begin(), tensors.end());
  return PerReplica(std::move(tensors));
}

}  // namespace

std::string_view name_of(Way way) {
  constexpr std::string_view kNames[] = {"returned",          "async",           "into",    "in place",
                                         "in place permuted", "partly in place", "prepared"};
  return kNames[static_cast<std::size_t>(way)];
}

bool is_possible(Way way, ReduceOp op, const PerReplica& value) {
  const DType dtype = value.tensor(0).dtype();
  return way <= Way::kInto || result_dtype(op, dtype) == dtype;
}

PerReplica deep_copy(const PerReplica& value) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < value.size(); ++r)
    tensors.push_back(value.tensor(r).copied_to(value.tensor(r).device()));
  return PerReplica(std::move(tensors));
}

std::vector<PerReplica> reduced(CrossDeviceOps& ops, ReduceOp op, const std::vector<PerReplica>& values,
                                Way way) {
  if (way == Way::kReturned || way == Way::kAsync) {
    std::vector<ValueDestination> pairs;
    for (const PerReplica& value : values) pairs.push_back({value, value});
    const std::vector<Mirrored> results =
        way == Way::kReturned ? ops.batch_reduce(op, pairs) : ops.batch_reduce_async(op, pairs).results();
    return {results.begin(), results.end()};
  }
  std::vector<PerReplica> copies;
  std::vector<PerReplica> results;
  for (const PerReplica& value : values) {
    copies.push_back(deep_copy(value));
    results.push_back(results_for(op, copies.back(), way));
  }
  if (way == Way::kPrepared) {
    ops.prepare(op, copies, results).run();
  } else {
    ops.batch_reduce_into(op, copies, results);
  }
  return results;
}

}  // namespace onesum::testing
