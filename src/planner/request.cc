#include "planner/request.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum::planner {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

bool owns(const Device& worker, const Device& device) {
  return worker.task() == device.task() && worker.replica() == device.replica() &&
         worker.job() == device.job();
}

std::string names_of(std::span<const Device> devices) {
  std::string names;
  for (const Device& device : devices) names += (names.empty() ? "" : ", ") + device.to_string();
  return names;
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
    check_workers();
    check_kinds();
    check_types();
    if (is_sparse(pair_)) {
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

  bool is_all_reduced() const { return reduces() && std::ranges::is_permutation(replicas_, destinations_); }

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
    if (!is_sparse(pair_)) return;
    if (request_.kind == CallKind::kGather) {
      throw Error(ErrorCode::kUnimplemented,
                  name_ +
                      ": gather takes tensors, not IndexedSlices; gather their values "
                      "and indices as tensors instead");
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
    if (reduces() && dtype() == DType::kBool) {
      refuse("{}: bool values have no {}; broadcast and gather take them", name_,
             request_.op == ReduceOp::kSum ? "sum" : "mean");
    }
  }

  bool reduces() const {
    return request_.kind == CallKind::kReduce || request_.kind == CallKind::kBatchReduce;
  }
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
  check_enum(op, ReduceOp::kMean, "the reduce operation", "sum, mean");
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

namespace {

void check_served(const Device& device, const Placement& placement, const std::string& what) {
  const std::string reason = placement.why_not_served
                                 ? placement.why_not_served(device)
                                 : fmt::format("no engine for {} devices is there", *device.type());
  if (reason.empty()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{} is on {}: {}", what, device.to_string(), reason));
}

}  // namespace

Device place(const Device& device, const Placement& placement, const std::string& what, bool only_planned) {
  const Device complete = device.canonical(placement.defaults);
  const std::span<const Device> workers =
      placement.workers.empty() ? std::span(&placement.defaults, 1) : std::span(placement.workers);
  if (std::ranges::none_of(workers, [&](const Device& worker) { return owns(worker, complete); })) {
    refuse("{} is on {}, which is not a device of {} ({})", what, complete.to_string(),
           workers.size() == 1 ? "this process" : "the cluster's workers", names_of(workers));
  }
  const auto names_it = [&](const std::vector<Device>& devices) {
    return std::ranges::find(devices, complete) != devices.end();
  };
  if (complete.type() != "CPU" && !(only_planned && names_it(placement.devices))) {
    check_served(complete, placement, what);
  }
  if (!placement.devices.empty() && !names_it(placement.devices) && !names_it(placement.others)) {
    refuse("{} is on {}, which is not one of the cluster's {} devices (from {} to {})", what,
           complete.to_string(), placement.devices.size(), placement.devices.front().to_string(),
           placement.devices.back().to_string());
  }
  return complete;
}

std::int32_t rank_of(const Device& device, const Placement& placement) {
  const auto found =
      std::ranges::find_if(placement.workers, [&](const Device& worker) { return owns(worker, device); });
  return found == placement.workers.end() ? 0 : static_cast<std::int32_t>(found - placement.workers.begin());
}

std::vector<Device> on_every_worker(const Device& device, const Placement& placement) {
  if (device.task() || placement.workers.empty()) return {device};
  std::vector<Device> devices;
  for (const Device& worker : placement.workers) {
    const Device its = device.merged_over(worker);
    if (owns(worker, its)) devices.push_back(its);  // not of another job
  }
  return devices.empty() ? std::vector{device} : devices;
}

Resolved resolve(const Request& request, const Placement& placement) {
  validate_options(request.op, request.options);
  Resolved resolved;
  DeviceNumbers numbers;
  for (std::size_t i = 0; i < request.pairs.size(); ++i) {
    PairResolver(request, i, placement, numbers).append_to(resolved.streams);
  }
  resolved.devices = numbers.take();
  for (const Device& device : resolved.devices) resolved.device_rank.push_back(rank_of(device, placement));
  return resolved;
}

std::string name_of_pair(CallKind kind, std::size_t pair) {
  return kind == CallKind::kBatchReduce ? fmt::format("pair {}", pair) : "value";
}

}  // namespace onesum::planner
