#include "api/merge_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/add_rows.h"
#include "api/engines.h"
#include "api/overlap.h"
#include "api/sparse.h"
#include "api/tensor_state.h"
#include "base/amounts.h"

namespace onesum::api {
namespace {

using planner::Stream;
using planner::StreamPart;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

const IndexedSlices& slices_of(const Value& value) { return std::get<IndexedSlices>(value); }

bool is_sparse(const Value& value) { return std::holds_alternative<IndexedSlices>(value); }

std::optional<Shape> dense_shape_of(const DistributedValues& value) {
  for (const Value& replica : value.values()) {
    if (slices_of(replica).dense_shape) return slices_of(replica).dense_shape;
  }
  return std::nullopt;
}

// The values of `rows` rows like those of `value`.
Shape shape_of(const DistributedValues& value, std::size_t rows) {
  const Shape& one = slices_of(value.value(0)).values.shape();
  std::vector<std::int64_t> extents(one.extents().begin(), one.extents().end());
  extents.front() = static_cast<std::int64_t>(rows);
  return Shape(std::span<const std::int64_t>(extents));
}

// Of one row of `value`.
std::size_t elements_of(const DistributedValues& value) { return shape_of(value, 1).elements(); }

std::size_t rows_of(const Value& value) { return slices_of(value).indices.shape().elements(); }

// --- overlaps ----------------------------------------------------------------------------------------

// All tensors of a call into the caller's memory.
class Memory {
 public:
  Memory(const CallTraits& traits, const Pairs& pairs, const Device& defaults)
      : traits_(traits), defaults_(defaults) {
    for (std::size_t i = 0; i < pairs.size(); ++i) add(i, pairs[i]);
  }

  // A result may only be a replica of its own value, in place.
  void refuse_overlaps() {
    const auto overlap = OverlapCheck(bytes_, is_result_, is_replaced_).find(bases_);
    if (!overlap) return;
    refuse(
        "{} and {} share memory; a result may only be exactly the replica of its own pair on its own device",
        names(overlap->first), names(overlap->second));
  }

 private:
  void add(std::size_t pair, const Pair& tensors) {
    const DistributedValues& results = *tensors.results;
    std::vector<bool> replaced(tensors.value->size());
    for (std::size_t d = 0; d < results.size(); ++d) {
      const int replica = in_place_replica(*tensors.value, results.value(d), d, defaults_);
      if (replica >= 0) replaced[static_cast<std::size_t>(replica)] = true;
    }
    for (std::size_t r = 0; r < replaced.size(); ++r) add(pair, tensors.value->value(r), false, replaced[r]);
    for (const Value& result : results.values()) add(pair, result, true, false);
  }

  void add(std::size_t pair, const Value& value, bool is_result, bool is_replaced) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) return add(pair, *tensor, is_result, is_replaced);
    add(pair, slices_of(value).values, is_result, is_replaced);
    add(pair, slices_of(value).indices, is_result, is_replaced);
  }

  void add(std::size_t pair, const Tensor& tensor, bool is_result, bool is_replaced) {
    bytes_.push_back(tensor.bytes());
    bases_.push_back(static_cast<std::byte*>(tensor.state()->memory));
    is_result_.push_back(is_result);
    is_replaced_.push_back(is_replaced);
    pairs_.push_back(pair);
    tensors_.push_back(tensor);
  }

  std::string names(std::size_t slot) const {
    return fmt::format("{}: {} on {}", planner::name_of_pair(traits_.kind, pairs_[slot]),
                       is_result_[slot] ? "result" : "replica",
                       tensors_[slot].device().canonical(defaults_).to_string());
  }

  const CallTraits& traits_;
  const Device& defaults_;
  std::vector<std::size_t> bytes_;
  std::vector<std::byte*> bases_;
  std::vector<bool> is_result_;
  std::vector<bool> is_replaced_;
  std::vector<std::size_t> pairs_;
  std::vector<Tensor> tensors_;
};

// --- indices -----------------------------------------------------------------------------------------

template <class Index>
void write_indices(const RowGroups& groups, std::span<const Value> results) {
  std::vector<Index> indices;
  indices.reserve(groups.rows.size());
  for (const std::size_t row : groups.rows) indices.push_back(static_cast<Index>(row));
  if (indices.empty()) return;
  for (const Value& result : results) {
    std::memcpy(slices_of(result).indices.state()->memory, indices.data(), indices.size() * sizeof(Index));
  }
}

}  // namespace

MergeRows::MergeRows(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
                     const planner::Placement& placement)
    : traits_(traits) {
  const planner::Resolved resolved =
      planner::resolve(describe(traits, pairs, options, placement.defaults), placement);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs_.push_back(pairs[i]);
  merges_.reserve(pairs.size());
  for (std::size_t s = 0; s < resolved.streams.size(); ++s) {
    const Stream& stream = resolved.streams[s];
    if (stream.part != StreamPart::kSliceValues) continue;
    Pair& pair = pairs_[stream.pair];
    const Merge& merge =
        merges_.emplace_back(merge_of(pair, stream, resolved.streams[s + 1], resolved.devices));
    check_results(merge);
    if (merge.concatenation) {
      pair.results = &*merge.concatenation;
    } else {
      pair.destinations = pair.destinations.first(1);
    }
  }
  if (traits.into) Memory(traits, pairs, placement.defaults).refuse_overlaps();
}

MergeRows::Merge MergeRows::merge_of(const Pair& pair, const Stream& values, const Stream& indices,
                                     const std::vector<Device>& devices) const {
  Merge merge;
  merge.pair = values.pair;
  merge.value = pair.value;
  merge.results = pair.results;
  for (const collective::Target& target : values.task.destinations) {
    merge.destinations.push_back(devices[static_cast<std::size_t>(target.device)]);
  }
  merge.index_dtype = indices.result_dtype;
  merge.result_dtype = result_dtype(traits_.op, values.result_dtype);
  merge.dense_shape = dense_shape_of(*pair.value);
  if (traits_.into) {
    const Device& device = merge.destinations.front();
    merge.concatenation = PerReplica(
        IndexedSlices{Tensor::empty(values.result_dtype, values.result_shape, device),
                      Tensor::empty(indices.result_dtype, indices.result_shape, device), std::nullopt});
  }
  return merge;
}

std::string MergeRows::name_of_result(const Merge& merge, std::size_t destination) const {
  return fmt::format("{}: result on {}", planner::name_of_pair(traits_.kind, merge.pair),
                     merge.destinations[destination].to_string());
}

// The caller's memory must be what the call would have returned; its rows are counted later.
void MergeRows::check_results(const Merge& merge) const {
  if (merge.results == nullptr) return;
  const Tensor& values = slices_of(merge.value->value(0)).values;
  for (std::size_t d = 0; d < merge.results->size(); ++d) {
    const std::string name = name_of_result(merge, d);
    if (!is_sparse(merge.results->value(d))) refuse("{} is dense, the value is sparse", name);
    const IndexedSlices& result = slices_of(merge.results->value(d));
    if (result.values.dtype() != merge.result_dtype) {
      refuse("{} (values) is of {}, expected {}{}", name, to_string(result.values.dtype()),
             to_string(merge.result_dtype),
             merge.result_dtype == values.dtype()
                 ? ""
                 : fmt::format(" (the mean of {})", to_string(values.dtype())));
    }
    if (result.indices.dtype() != merge.index_dtype) {
      refuse("{} (indices) is of {}, expected {}", name, to_string(result.indices.dtype()),
             to_string(merge.index_dtype));
    }
    const Shape expected = shape_of(*merge.value, rows_of(merge.results->value(d)));
    if (result.values.shape() != expected) {
      refuse("{} (values) has shape {}, expected {}", name, result.values.shape().to_string(),
             expected.to_string());
    }
  }
}

void MergeRows::explain_in(planner::Planned& planned) const {
  for (std::size_t p = 0; p < planned.choices.size(); ++p) {
    const Stream& stream = planned.streams[planned.pack_streams[p].front()];
    std::string& reason = planned.choices[p].reason;
    if (stream.part == StreamPart::kSliceIndices) reason += "; then each index is kept once, ascending";
    if (stream.part != StreamPart::kSliceValues) continue;
    const auto of_pair = [&](const Merge& merge) { return merge.pair == stream.pair; };
    const Merge& merge = *std::ranges::find_if(merges_, of_pair);
    const engine::ReduceForm form = form_of(merge);
    reason += fmt::format(
        ", undivided, into memory of the library; then rows of one index are added in {}, inside a replica "
        "by position and over replicas in canonical order, {}and written once to {} as {}",
        to_string(form.accumulator), form.divisor == 1 ? "" : fmt::format("divided by {} ", form.divisor),
        counted(merge.destinations.size(), "destination"), to_string(form.output));
  }
}

void MergeRows::read_indices() {
  for (Merge& merge : merges_) {
    const auto bound = merge.dense_shape ? std::optional((*merge.dense_shape)[0]) : std::nullopt;
    std::vector<std::vector<std::size_t>> indices;
    for (std::size_t r = 0; r < merge.value->size(); ++r) {
      indices.push_back(
          checked_indices(slices_of(merge.value->value(r)), bound,
                          fmt::format("{}: replica {}", planner::name_of_pair(traits_.kind, merge.pair), r)));
    }
    merge.groups = group_rows(indices);
    check_rows(merge);
  }
}

void MergeRows::check_rows(const Merge& merge) const {
  if (merge.results == nullptr) return;
  const std::size_t expected = merge.groups.rows.size();
  for (std::size_t d = 0; d < merge.results->size(); ++d) {
    const std::size_t found = rows_of(merge.results->value(d));
    if (found == expected) continue;
    refuse("{} has {} row(s), expected {}: the {} row(s) of all replicas have so many different indices",
           name_of_result(merge, d), found, expected, merge.groups.positions.size());
  }
}

std::vector<Mirrored> MergeRows::finish(std::vector<Mirrored> results, Clock::time_point deadline) {
  for (Merge& merge : merges_) {
    if (traits_.into) {
      write(merge, merge.concatenation->slices(), merge.results->values(), deadline);
      merge.concatenation.reset();
    } else {
      std::vector<Value> made = make_results(merge);
      write(merge, results[merge.pair].slices(), made, deadline);
      results[merge.pair] = Mirrored(std::move(made));
    }
    merge.groups = {};
  }
  return results;
}

std::vector<Value> MergeRows::make_results(const Merge& merge) const {
  const std::size_t rows = merge.groups.rows.size();
  std::vector<Value> results;
  for (const Device& device : merge.destinations) {
    results.emplace_back(IndexedSlices{
        Tensor::empty(merge.result_dtype, shape_of(*merge.value, rows), device),
        Tensor::empty(merge.index_dtype, {static_cast<std::int64_t>(rows)}, device), merge.dense_shape});
  }
  return results;
}

engine::ReduceForm MergeRows::form_of(const Merge& merge) const {
  engine::ReduceForm form;
  form.input = element_of(slices_of(merge.value->value(0)).values.dtype());
  form.accumulator = accumulator_of(traits_.op, form.input);
  form.output = element_of(merge.result_dtype);
  form.divisor = traits_.op == ReduceOp::kMean ? static_cast<std::int64_t>(merge.value->size()) : 1;
  return form;
}

void MergeRows::write(const Merge& merge, const IndexedSlices& concatenation, std::span<const Value> results,
                      Clock::time_point deadline) const {
  std::vector<std::byte*> destinations;
  for (const Value& result : results) {
    destinations.push_back(static_cast<std::byte*>(slices_of(result).values.state()->memory));
  }
  const RowSums sums{.groups = merge.groups,
                     .form = form_of(merge),
                     .row_elements = elements_of(*merge.value),
                     .values = static_cast<const std::byte*>(concatenation.values.memory()),
                     .destinations = destinations};
  add_rows(sums, engine_of(merge.destinations.front()), deadline);
  if (merge.index_dtype == DType::kInt64) {
    write_indices<std::int64_t>(merge.groups, results);
  } else {
    write_indices<std::int32_t>(merge.groups, results);
  }
}

}  // namespace onesum::api
