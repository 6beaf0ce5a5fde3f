#include "planner/request.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/combine.h"
#include "planner/parts.h"

namespace onesum::planner {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

bool is_sparse(const PairInfo& pair) { return pair.replicas.front().indices.has_value(); }

// Numbers devices in the order in which they appear.
class DeviceNumbers {
 public:
  std::int32_t number(const Device& device) {
    const auto found = std::find(devices_.begin(), devices_.end(), device);
    if (found != devices_.end()) return static_cast<std::int32_t>(found - devices_.begin());
    devices_.push_back(device);
    return static_cast<std::int32_t>(devices_.size() - 1);
  }
  std::vector<Device> take() { return std::move(devices_); }

 private:
  std::vector<Device> devices_;
};

// Resolves one pair; lives for that long.
class PairResolver {
 public:
  PairResolver(const Request& request, std::size_t index, const Placement& placement, DeviceNumbers& numbers)
      : request_(request),
        pair_(request.pairs[index]),
        index_(index),
        name_(name_of_pair(request.kind, index)),
        placement_(placement),
        numbers_(numbers) {}

  void append_to(std::vector<Stream>& streams) {
    if (pair_.replicas.empty()) refuse("{}: the value has no components", name_);
    place_replicas();
    place_destinations();
    if (has_root(request_.kind) && replicas_.size() != 1) {
      refuse("{}: the root of a {} brings {} replicas; expected one", name_, name_of(request_.kind),
             replicas_.size());
    }
    check_workers();
    check_kinds();
    check_types();
    if (has_parts(request_.kind)) {
      append_parts(streams);
    } else if (is_sparse(pair_)) {
      append_slices(streams);
    } else {
      append_dense(streams);
    }
  }

 private:
  void place_replicas() {
    for (std::size_t r = 0; r < pair_.replicas.size(); ++r) {
      const Device device = place(pair_.replicas[r].tensor.device, placement_,
                                  fmt::format("{}: replica {}", name_, r), request_.only_planned);
      if (std::find(replicas_.begin(), replicas_.end(), device) != replicas_.end()) {
        refuse("{}: two replicas are on {}; every replica of a value must be on a device of its own", name_,
               device.to_string());
      }
      replicas_.push_back(device);
    }
  }

  void place_destinations() {
    if (pair_.destinations.empty()) refuse("{}: the destination has no devices", name_);
    const std::vector<Device> expanded = pair_.destination_is_text
                                             ? on_every_worker(pair_.destinations.front(), placement_)
                                             : pair_.destinations;
    for (const Device& raw : expanded) {
      const Device device = place(raw, placement_, name_ + ": destination", request_.only_planned);
      if (std::find(destinations_.begin(), destinations_.end(), device) != destinations_.end()) {
        refuse("{}: the destination names {} twice", name_, device.to_string());
      }
      destinations_.push_back(device);
    }
  }

  bool is_all_reduced() const {
    return reduces() && !has_parts(request_.kind) && std::ranges::is_permutation(replicas_, destinations_);
  }

  void check_workers() const {
    if (!placement_.all_workers || !is_all_reduced()) return;
    for (std::size_t rank = 0; rank < placement_.workers.size(); ++rank) {
      const Device& worker = placement_.workers[rank];
      if (std::ranges::none_of(replicas_, [&](const Device& device) { return owns(worker, device); })) {
        refuse("{}: no replica is on worker {} ({}); an all-reduce needs one on each of the {} workers",
               name_, rank, worker.to_string(), placement_.workers.size());
      }
    }
  }

  std::string replica_name(std::size_t r) const {
    return fmt::format("replica on {}", replicas_[r].to_string());
  }

  // All dense or all slices: what is mixed was made dense before.
  void check_kinds() const {
    for (std::size_t r = 1; r < pair_.replicas.size(); ++r) {
      if (pair_.replicas[r].indices.has_value() != is_sparse(pair_)) {
        throw Error(ErrorCode::kInternal, name_ + ": dense and sparse replicas reached the planner together");
      }
    }
    const auto has_indices = [](const ComponentInfo& component) { return component.indices.has_value(); };
    const bool is_about_slices = is_sparse(pair_) || std::ranges::any_of(pair_.results, has_indices);
    if (is_about_slices && (request_.kind == CallKind::kGather || has_parts(request_.kind))) {
      throw Error(ErrorCode::kUnimplemented,
                  fmt::format("{0}: {1} takes tensors, not IndexedSlices; {1} their values and indices as "
                              "tensors instead",
                              name_, name_of(request_.kind)));
    }
  }

  void check_types() const {
    const DType first = pair_.replicas.front().tensor.dtype;
    for (std::size_t r = 1; r < pair_.replicas.size(); ++r) {
      const DType other = pair_.replicas[r].tensor.dtype;
      if (other != first) {
        refuse("{}: {} is of {}, {} of {}; all replicas must be of one type", name_, replica_name(r),
               to_string(other), replica_name(0), to_string(first));
      }
    }
    if (reduces() && !is_defined(combine_of(request_.op), element_of(dtype()))) {
      refuse("{}: {}; broadcast and gather take every type", name_, why_undefined(request_.op, dtype()));
    }
  }

  bool reduces() const { return is_reduction(request_.kind); }
  // What is merged is concatenated first, undivided; whoever merges then divides, and checks the results.
  bool merges_rows() const {
    return reduces() && is_sparse(pair_) && request_.options.sparse_rows == SparseRows::kMergeDuplicates;
  }
  DType dtype() const { return pair_.declared_dtype.value_or(pair_.replicas.front().tensor.dtype); }
  std::int64_t replica_count() const { return static_cast<std::int64_t>(replicas_.size()); }

  // A stream with everything but sizes and contract.
  Stream stream_of(StreamPart part) const {
    Stream stream;
    stream.pair = index_;
    stream.part = part;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      const ComponentInfo& replica = pair_.replicas[r];
      const DType type = part == StreamPart::kSliceIndices ? replica.indices->dtype : replica.tensor.dtype;
      stream.task.replicas.push_back({numbers_.number(replicas_[r]), element_of(type)});
    }
    for (std::size_t d = 0; d < destinations_.size(); ++d) {
      stream.task.destinations.push_back(
          {numbers_.number(destinations_[d]), pair_.in_place_of.empty() ? -1 : pair_.in_place_of[d]});
    }
    if (part != StreamPart::kSliceIndices && reduces() && !merges_rows()) {
      stream.result_dtype = result_dtype(request_.op, dtype());
      stream.task.accumulator = accumulator_of(request_.op, element_of(dtype()));
      stream.task.divisor = request_.op == ReduceOp::kMean ? replica_count() : 1;
      stream.task.combine = combine_of(request_.op);
    } else {
      stream.result_dtype = dtype();
      stream.task.accumulator = element_of(dtype());
    }
    stream.task.output = element_of(stream.result_dtype);
    return stream;
  }

  void append_dense(std::vector<Stream>& streams) const {
    Stream stream = stream_of(StreamPart::kDense);
    if (request_.kind == CallKind::kGather) {
      concatenate(stream, gather_axis(), &ComponentInfo::tensor);
    } else {
      check_equal_shapes();
      stream.result_shape = pair_.replicas.front().tensor.shape;
      stream.replica_elements.assign(replicas_.size(), stream.result_shape.elements());
    }
    check_results(stream);
    streams.push_back(std::move(stream));
  }

  void append_parts(std::vector<Stream>& streams) const {
    if (pair_.results.empty()) refuse("{}: {} has no results", name_, name_of(request_.kind));
    if (request_.kind == CallKind::kReduceScatter) check_equal_shapes();
    const Stream whole = stream_of(StreamPart::kDense);
    check_types_of_results(whole);
    const std::vector<Part> parts = parts_of(request_.kind, pair_, name_);
    check_equal_parts(parts);
    for (const Part& part : parts) streams.push_back(stream_of(whole, part));
  }

  void check_equal_parts(const std::vector<Part>& parts) const {
    if (!request_.has_equal_parts) return;
    for (const Part& part : parts) {
      if (part.elements == parts.front().elements) continue;
      refuse("{}: a part has {} elements, another one {}, though has_equal_parts promises that all are equal",
             name_, parts.front().elements, part.elements);
    }
  }

  // The part of a stream that is about all replicas and results.
  Stream stream_of(const Stream& whole, const Part& part) const {
    Stream stream = whole;
    stream.task.replicas.clear();
    stream.task.destinations.clear();
    for (const std::uint32_t r : part.replicas) stream.task.replicas.push_back(whole.task.replicas[r]);
    for (const std::uint32_t d : part.results) {
      stream.task.destinations.push_back({whole.task.destinations[d].device, replaced_by(d, part)});
    }
    stream.replica_elements.assign(part.replicas.size(), part.elements);
    stream.result_shape = Shape{static_cast<std::int64_t>(part.elements)};
    stream.replica_numbers = part.replicas;
    stream.result_numbers = part.results;
    stream.input_offset = part.input_offset;
    stream.output_offset = part.output_offset;
    return stream;
  }

  // Which of the part's replicas lies exactly where its result will; -1: none.
  std::int32_t replaced_by(std::uint32_t result, const Part& part) const {
    const TensorInfo& to = pair_.results[result].tensor;
    if (to.memory == 0 || part.elements == 0) return -1;
    const std::uintptr_t there = to.memory + part.output_offset * size_of(to.dtype);
    for (std::size_t i = 0; i < part.replicas.size(); ++i) {
      const TensorInfo& from = pair_.replicas[part.replicas[i]].tensor;
      const bool is_there = from.memory + part.input_offset * size_of(from.dtype) == there;
      const bool is_alike = from.dtype == to.dtype && replicas_[part.replicas[i]] == destinations_[result];
      if (from.memory != 0 && is_there && is_alike) return static_cast<std::int32_t>(i);
    }
    return -1;
  }

  void check_types_of_results(const Stream& stream) const {
    for (std::size_t d = 0; d < pair_.results.size(); ++d) {
      const DType dtype = pair_.results[d].tensor.dtype;
      if (dtype == stream.result_dtype) continue;
      refuse("{}: result on {} is of {}, expected {}{}", name_, destinations_[d].to_string(),
             to_string(dtype), to_string(stream.result_dtype), why_this_dtype(stream));
    }
  }

  void check_equal_shapes() const {
    const Shape& first = pair_.replicas.front().tensor.shape;
    for (std::size_t r = 1; r < replicas_.size(); ++r) {
      const Shape& other = pair_.replicas[r].tensor.shape;
      if (other != first) {
        refuse("{}: {} has shape {} ({} elements), {} has {} ({} elements)", name_, replica_name(r),
               other.to_string(), other.elements(), replica_name(0), first.to_string(), first.elements());
      }
    }
  }

  std::size_t gather_axis() const {
    const auto rank = static_cast<int>(pair_.replicas.front().tensor.shape.rank());
    if (rank == 0) refuse("{}: scalars cannot be gathered; give them a shape such as [1]", name_);
    const int axis = request_.axis < 0 ? request_.axis + rank : request_.axis;
    if (axis < 0 || axis >= rank) {
      refuse("{}: axis {} of a value with {} axes; expected {} to {}", name_, request_.axis, rank, -rank,
             rank - 1);
    }
    return static_cast<std::size_t>(axis);
  }

  // The result is all replicas' `part` one after the other along `axis`.
  template <class Part>
  void concatenate(Stream& stream, std::size_t axis, Part part) const {
    const Shape& first = (pair_.replicas.front().*part).shape;
    std::vector<std::int64_t> extents(first.extents().begin(), first.extents().end());
    extents[axis] = 0;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      const Shape& shape = (pair_.replicas[r].*part).shape;
      check_equal_but_for(axis, r, shape, first);
      extents[axis] += shape[axis];
      stream.replica_elements.push_back(shape.elements());
    }
    for (std::size_t a = 0; a < axis; ++a) stream.outer *= static_cast<std::size_t>(extents[a]);
    stream.result_shape = Shape(std::span<const std::int64_t>(extents));
    stream.task.contract = plan::Contract::kConcatenate;
  }

  void check_equal_but_for(std::size_t axis, std::size_t r, const Shape& shape, const Shape& first) const {
    bool equal = shape.rank() == first.rank();
    for (std::size_t a = 0; equal && a < first.rank(); ++a) equal = a == axis || shape[a] == first[a];
    if (!equal) {
      refuse("{}: {} has shape {}, {} has {}; they may differ in axis {} only", name_, replica_name(r),
             shape.to_string(), replica_name(0), first.to_string(), axis);
    }
  }

  void append_slices(std::vector<Stream>& streams) const {
    Stream values = stream_of(StreamPart::kSliceValues);
    values.dense_shape = dense_shape();
    concatenate(values, 0, &ComponentInfo::tensor);
    check_results(values);

    Stream indices = stream_of(StreamPart::kSliceIndices);
    bool wide = false;
    std::size_t rows = 0;
    for (const ComponentInfo& replica : pair_.replicas) {
      wide = wide || replica.indices->dtype == DType::kInt64;
      indices.replica_elements.push_back(replica.indices->shape.elements());
      rows += replica.indices->shape.elements();
    }
    indices.result_dtype = wide ? DType::kInt64 : DType::kInt32;
    indices.task.accumulator = indices.task.output = element_of(indices.result_dtype);
    indices.task.contract = plan::Contract::kConcatenate;
    indices.result_shape = Shape{static_cast<std::int64_t>(rows)};
    check_results(indices);
    streams.push_back(std::move(values));
    streams.push_back(std::move(indices));
  }

  std::optional<Shape> dense_shape() const {
    std::optional<std::size_t> known;  // the first replica that names one
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      const std::optional<Shape>& shape = pair_.replicas[r].dense_shape;
      if (!shape) continue;
      if (!known) known = r;
      const Shape& first = *pair_.replicas[*known].dense_shape;
      if (*shape != first) {
        refuse("{}: the dense shape of the {} is {}, of the {} {}", name_, replica_name(r),
               shape->to_string(), replica_name(*known), first.to_string());
      }
    }
    return known ? pair_.replicas[*known].dense_shape : std::nullopt;
  }

  // The caller's memory must be just what the call would have returned.
  void check_results(const Stream& stream) const {
    if (!request_.into || merges_rows()) return;
    for (std::size_t d = 0; d < pair_.results.size(); ++d) {
      const ComponentInfo& result = pair_.results[d];
      const std::string name = fmt::format("{}: result on {}", name_, destinations_[d].to_string());
      if (result.indices.has_value() != is_sparse(pair_)) {
        refuse("{} is {}, the value is {}", name, result.indices ? "sparse" : "dense",
               is_sparse(pair_) ? "sparse" : "dense");
      }
      const bool is_indices = stream.part == StreamPart::kSliceIndices;
      const TensorInfo& tensor = is_indices ? *result.indices : result.tensor;
      const char* part = stream.part == StreamPart::kDense ? "" : is_indices ? " (indices)" : " (values)";
      if (tensor.dtype != stream.result_dtype) {
        refuse("{}{} is of {}, expected {}{}", name, part, to_string(tensor.dtype),
               to_string(stream.result_dtype), why_this_dtype(stream));
      }
      if (tensor.shape != stream.result_shape) {
        refuse("{}{} has shape {}, expected {}", name, part, tensor.shape.to_string(),
               stream.result_shape.to_string());
      }
    }
  }

  std::string why_this_dtype(const Stream& stream) const {
    if (stream.result_dtype == dtype() || stream.part == StreamPart::kSliceIndices) return "";
    return fmt::format(" (the mean of {})", to_string(dtype()));
  }

  const Request& request_;
  const PairInfo& pair_;
  std::size_t index_;
  std::string name_;
  const Placement& placement_;
  DeviceNumbers& numbers_;
  std::vector<Device> replicas_;  // complete, as are these:
  std::vector<Device> destinations_;
};

template <class Enum>
void check_enum(Enum value, Enum last, const char* what, const char* names) {
  if (value > last) {
    refuse("{} {} is not one of {}", what, static_cast<int>(value), names);
  }
}

}  // namespace

void validate_options(ReduceOp op, const CommunicationOptions& options) {
  if (op > kLastReduceOp) {
    refuse("the reduce operation {} is not one of {}", static_cast<int>(op), reduce_op_names());
  }
  check_enum(options.implementation, Implementation::kNccl, "options.implementation", "auto, ring, nccl");
  check_enum(options.numerics, Numerics::kExact, "options.numerics", "canonical, fast, exact");
  check_enum(options.sparse_rows, SparseRows::kMergeDuplicates, "options.sparse_rows",
             "concatenate, merge_duplicates");
  if (options.timeout && options.timeout->count() <= 0) {
    refuse("options.timeout is {} ms; expected a positive time, or none for 30 minutes",
           options.timeout->count());
  }
  if (options.numerics == Numerics::kExact) {
    throw Error(ErrorCode::kUnimplemented,
                "options.numerics: exact sums are not available yet; use canonical or fast");
  }
}

void validate_operation(const Request& request) {
  if (!is_reduction(request.kind) || is_sum_or_mean(request.op)) return;
  for (std::size_t p = 0; p < request.pairs.size(); ++p) {
    const std::vector<ComponentInfo>& replicas = request.pairs[p].replicas;
    const auto is_slices = [](const ComponentInfo& replica) { return replica.indices.has_value(); };
    const auto slices = std::ranges::find_if(replicas, is_slices);
    if (slices == replicas.end()) continue;
    refuse(
        "{}: replica {} is IndexedSlices, of which there is no {}; they have sum and mean, tensors the rest",
        name_of_pair(request.kind, p), slices - replicas.begin(), name_of(request.op));
  }
}

Resolved resolve(const Request& request, const Placement& placement) {
  validate_options(request.op, request.options);
  validate_operation(request);
  Resolved resolved;
  DeviceNumbers numbers;
  for (std::size_t i = 0; i < request.pairs.size(); ++i) {
    PairResolver(request, i, placement, numbers).append_to(resolved.streams);
  }
  resolved.devices = numbers.take();
  for (const Device& device : resolved.devices) resolved.device_rank.push_back(rank_of(device, placement));
  return resolved;
}

std::string_view name_of(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::kReduce:
      return "reduce";
    case CallKind::kBatchReduce:
      return "batch_reduce";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kGather:
      return "gather";
    case CallKind::kReduceScatter:
      return "reduce_scatter";
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kScatter:
      return "scatter";
    case CallKind::kAllToAll:
      return "all_to_all";
  }
  return "call";
}

std::string name_of_pair(CallKind kind, std::size_t pair) {
  if (kind == CallKind::kBatchReduce) return fmt::format("pair {}", pair);
  return has_parts(kind) ? fmt::format("tensor {}", pair) : "value";
}

}  // namespace onesum::planner
