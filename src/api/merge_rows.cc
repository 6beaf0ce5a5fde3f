#include "api/merge_rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/add_rows.h"
#include "api/caller_memory.h"
#include "api/copies.h"
#include "api/engines.h"
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

// `shape` with so many rows.
Shape with_rows(const Shape& shape, std::size_t rows) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.front() = static_cast<std::int64_t>(rows);
  return Shape(std::span<const std::int64_t>(extents));
}

// What indices must be less than.
std::optional<std::int64_t> bound_of(const std::optional<Shape>& dense_shape) {
  return dense_shape ? std::optional((*dense_shape)[0]) : std::nullopt;
}

// --- indices -----------------------------------------------------------------------------------------

template <class Index>
void write_indices(const RowGroups& groups, std::span<const Value> results) {
  std::vector<Index> indices;
  indices.reserve(groups.rows.size());
  for (const std::size_t row : groups.rows) indices.push_back(static_cast<Index>(row));
  if (indices.empty()) return;
  const Tensor all =
      Tensor::borrow(indices.data(), kDTypeOf<Index>, {static_cast<std::int64_t>(indices.size())}, "CPU:0");
  for (const Value& result : results) copy(all, slices_of(result).indices);
}

}  // namespace

MergeRows::MergeRows(const CallTraits& traits, const Pairs& pairs, planner::Request request,
                     const planner::Placement& placement, std::optional<std::int32_t> own)
    : traits_(traits), given_(pairs), request_(std::move(request)), placement_(placement), own_(own) {
  planner::Resolved resolved = planner::resolve(request_, placement_);
  devices_ = std::move(resolved.devices);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs_.push_back(pairs[i]);
  merges_.reserve(pairs.size());
  for (std::size_t s = 0; s < resolved.streams.size(); ++s) {
    const Stream& stream = resolved.streams[s];
    if (stream.part != StreamPart::kSliceValues) continue;
    const Merge& merge = merges_.emplace_back(merge_of(pairs_[stream.pair], stream, resolved.streams[s + 1]));
    check_results(merge);
    redirect(merge);
  }
}

bool MergeRows::is_here(const Device& device) const {
  return !own_ || planner::rank_of(device, placement_) == *own_;
}

MergeRows::Merge MergeRows::merge_of(const Pair& pair, const Stream& values, const Stream& indices) const {
  Merge merge;
  merge.pair = values.pair;
  merge.value = pair.value;
  merge.results = pair.results;
  merge.all_results = request_.pairs[values.pair].results;
  for (const collective::Target& target : values.task.destinations) {
    merge.destinations.push_back(devices_[static_cast<std::size_t>(target.device)]);
    if (is_here(merge.destinations.back())) merge.here.push_back(merge.destinations.back());
  }
  merge.rows = indices.replica_elements;
  merge.shape = values.result_shape;
  merge.dtype = values.result_dtype;
  merge.index_dtype = indices.result_dtype;
  merge.result_dtype = result_dtype(traits_.op, values.result_dtype);
  merge.dense_shape = values.dense_shape;
  if (traits_.into) {
    const Device& device = merge.here.front();
    merge.concatenation = PerReplica(
        IndexedSlices{Tensor::empty(values.result_dtype, values.result_shape, device),
                      Tensor::empty(indices.result_dtype, indices.result_shape, device), std::nullopt});
  }
  return merge;
}

// The value goes to its concatenations: one here, and one in every other process that has destinations.
void MergeRows::redirect(const Merge& merge) {
  Pair& pair = pairs_[merge.pair];
  if (merge.concatenation) {
    pair.results = &*merge.concatenation;
  } else {
    pair.destinations = std::span(merge.here).first(merge.here.empty() ? 0 : 1);
    pair.destination_is_text = false;
  }
  planner::PairInfo& described = request_.pairs[merge.pair];
  described.destination_is_text = false;
  described.destinations.clear();
  described.results.clear();
  described.in_place_of.clear();
  for (const Device& device : merge.destinations) {
    const auto is_of_its_process = [&](const Device& other) {
      return !own_ || planner::rank_of(other, placement_) == planner::rank_of(device, placement_);
    };
    if (std::ranges::none_of(described.destinations, is_of_its_process))
      described.destinations.push_back(device);
  }
}

std::string MergeRows::name_of_replica(const Merge& merge, std::size_t replica) const {
  return fmt::format("{}: replica {}", planner::name_of_pair(traits_.kind, merge.pair), replica);
}

std::string MergeRows::name_of_result(const Merge& merge, std::size_t destination) const {
  return fmt::format("{}: result on {}", planner::name_of_pair(traits_.kind, merge.pair),
                     merge.destinations[destination].to_string());
}

// The callers' memory must be what the call would have returned; its rows are counted later.
void MergeRows::check_results(const Merge& merge) const {
  for (std::size_t d = 0; d < merge.all_results.size(); ++d) {
    const std::string name = name_of_result(merge, d);
    const planner::ComponentInfo& result = merge.all_results[d];
    if (!result.indices) refuse("{} is dense, the value is sparse", name);
    if (result.tensor.dtype != merge.result_dtype) {
      refuse(
          "{} (values) is of {}, expected {}{}", name, to_string(result.tensor.dtype),
          to_string(merge.result_dtype),
          merge.result_dtype == merge.dtype ? "" : fmt::format(" (the mean of {})", to_string(merge.dtype)));
    }
    if (result.indices->dtype != merge.index_dtype) {
      refuse("{} (indices) is of {}, expected {}", name, to_string(result.indices->dtype),
             to_string(merge.index_dtype));
    }
    const Shape expected = with_rows(merge.shape, result.indices->shape.elements());
    if (result.tensor.shape != expected) {
      refuse("{} (values) has shape {}, expected {}", name, result.tensor.shape.to_string(),
             expected.to_string());
    }
  }
}

void MergeRows::refuse_overlaps() const {
  if (traits_.into) api::refuse_overlaps(traits_, given_, placement_.defaults);
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

void MergeRows::check_indices() const {
  for (const Merge& merge : merges_) {
    for (std::size_t r = 0; r < merge.value->size(); ++r)
      checked_indices(slices_of(merge.value->value(r)), bound_of(merge.dense_shape),
                      name_of_replica(merge, r));
  }
}

void MergeRows::read_indices() {
  for (Merge& merge : merges_) {
    std::vector<std::vector<std::size_t>> indices;
    for (std::size_t r = 0; r < merge.value->size(); ++r) {
      indices.push_back(checked_indices(slices_of(merge.value->value(r)), bound_of(merge.dense_shape),
                                        name_of_replica(merge, r)));
    }
    merge.groups = group_rows(indices);
    check_rows(merge);
  }
}

void MergeRows::read_indices(std::span<const Mirrored> results) {
  for (Merge& merge : merges_) {
    if (merge.here.empty()) continue;
    const IndexedSlices& all = traits_.into ? merge.concatenation->slices() : results[merge.pair].slices();
    std::vector<std::vector<std::size_t>> indices;
    std::size_t first = 0;
    for (std::size_t r = 0; r < merge.rows.size(); ++r) {
      indices.push_back(checked_indices(IndexRange{all.indices, first, merge.rows[r]},
                                        bound_of(merge.dense_shape), name_of_replica(merge, r)));
      first += merge.rows[r];
    }
    merge.groups = group_rows(indices);
    check_rows(merge);
  }
}

void MergeRows::check_rows(const Merge& merge) const {
  const std::size_t expected = merge.groups.rows.size();
  for (std::size_t d = 0; d < merge.all_results.size(); ++d) {
    const std::size_t found = merge.all_results[d].indices->shape.elements();
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
      if (!made.empty()) write(merge, results[merge.pair].slices(), made, deadline);
      std::vector<Device> elsewhere;
      std::ranges::remove_copy_if(merge.destinations, std::back_inserter(elsewhere),
                                  [&](const Device& device) { return is_here(device); });
      results[merge.pair] = Mirrored(std::move(made), std::move(elsewhere));
    }
    merge.groups = {};
  }
  return results;
}

std::vector<Value> MergeRows::make_results(const Merge& merge) const {
  const std::size_t rows = merge.groups.rows.size();
  std::vector<Value> results;
  for (const Device& device : merge.here) {
    results.emplace_back(IndexedSlices{
        Tensor::empty(merge.result_dtype, with_rows(merge.shape, rows), device),
        Tensor::empty(merge.index_dtype, {static_cast<std::int64_t>(rows)}, device), merge.dense_shape});
  }
  return results;
}

engine::ReduceForm MergeRows::form_of(const Merge& merge) const {
  engine::ReduceForm form;
  form.input = element_of(merge.dtype);
  form.accumulator = accumulator_of(traits_.op, form.input);
  form.output = element_of(merge.result_dtype);
  form.divisor = traits_.op == ReduceOp::kMean ? static_cast<std::int64_t>(merge.rows.size()) : 1;
  return form;
}

void MergeRows::write(const Merge& merge, const IndexedSlices& concatenation, std::span<const Value> results,
                      Clock::time_point deadline) const {
  const Tensor rows = on_host(concatenation.values);
  std::vector<Tensor> sums_here;  // of results, or of copies on the host
  std::vector<std::byte*> destinations;
  for (const Value& result : results) {
    const Tensor& values = slices_of(result).values;
    sums_here.push_back(is_on_host(values) ? values : Tensor::empty(values.dtype(), values.shape(), "CPU:0"));
    destinations.push_back(static_cast<std::byte*>(sums_here.back().memory()));
  }
  const RowSums sums{.groups = merge.groups,
                     .form = form_of(merge),
                     .row_elements = with_rows(merge.shape, 1).elements(),
                     .values = static_cast<const std::byte*>(rows.memory()),
                     .destinations = destinations};
  add_rows(sums, host_engine(), deadline);
  for (std::size_t r = 0; r < results.size(); ++r) copy(sums_here[r], slices_of(results[r]).values);
  if (merge.index_dtype == DType::kInt64) {
    write_indices<std::int64_t>(merge.groups, results);
  } else {
    write_indices<std::int32_t>(merge.groups, results);
  }
}

bool merges_rows(const planner::Request& request) {
  const bool reduces =
      request.kind == planner::CallKind::kReduce || request.kind == planner::CallKind::kBatchReduce;
  return reduces && request.options.sparse_rows == SparseRows::kMergeDuplicates &&
         std::ranges::any_of(request.pairs, [](const planner::PairInfo& pair) {
           return !pair.replicas.empty() && pair.replicas.front().indices;
         });
}

}  // namespace onesum::api
