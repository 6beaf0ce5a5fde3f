// A call as the planner sees it, and its validation.
//
// Requests are made by api from the caller's arguments; they describe tensors and hold no memory. `resolve`
// refuses whatever is wrong before any work, each error naming the pair, the device, what was found and what
// was expected, and turns devices into small numbers and values into streams: one stream per tensor that is
// reduced, concatenated or copied (a dense value is one stream, a sparse one is two: its values and its
// indices). Of sparse values whose duplicate rows are to be merged, the streams are the concatenation that
// precedes the merging: undivided, and of the type of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/options.h>
#include <onesum/shape.h>

#include "collective/task.h"
#include "planner/placement.h"

namespace onesum::planner {

struct TensorInfo {
  DType dtype = DType::kFloat32;
  Shape shape;
  Device device;
  std::uintptr_t memory = 0;  // of this process, only to be compared; 0: another's, or none
};

// One component: a dense tensor, or slices (each well formed by itself).
struct ComponentInfo {
  TensorInfo tensor;                  // of slices: their values
  std::optional<TensorInfo> indices;  // slices only
  std::optional<Shape> dense_shape;
};

struct PairInfo {
  std::vector<ComponentInfo> replicas;
  std::vector<Device> destinations;
  // The one destination came as text: without a task it stands for that device of every worker.
  bool destination_is_text = false;
  // Calls into the caller's memory: a component per destination, and the replica each one is (-1: none of
  // them).
  std::vector<ComponentInfo> results;
  std::vector<std::int32_t> in_place_of;
  // Components that were brought to the accumulator type of this dtype before; absent: they are what they
  // are.
  std::optional<DType> declared_dtype;
  // kAllToAll: of each replica, how many elements each result gets; none: equal parts.
  std::vector<std::vector<std::size_t>> splits{};
};

// Those from kReduceScatter on hand out parts of tensors (planner/parts.h), into the caller's memory.
enum class CallKind : std::uint8_t {
  kReduce,
  kBatchReduce,
  kBroadcast,
  kGather,
  kReduceScatter,
  kAllGather,
  kScatter,
  kAllToAll,
};
constexpr bool has_parts(CallKind kind) noexcept { return kind >= CallKind::kReduceScatter; }
constexpr bool is_reduction(CallKind kind) noexcept {
  return kind == CallKind::kReduce || kind == CallKind::kBatchReduce || kind == CallKind::kReduceScatter;
}
// Whether one worker's value counts, and nobody else's is looked at.
constexpr bool has_root(CallKind kind) noexcept {
  return kind == CallKind::kBroadcast || kind == CallKind::kScatter;
}

struct Request {
  CallKind kind = CallKind::kBatchReduce;
  ReduceOp op = ReduceOp::kSum;
  int axis = 0;                  // kGather
  int root = 0;                  // has_root: the worker whose value counts
  bool has_equal_parts = false;  // kinds that have parts: a promise of all workers
  bool into = false;
  bool only_planned = false;  // never run: devices need no engine
  CommunicationOptions options;
  std::vector<PairInfo> pairs;
  std::string policy{};  // of several processes: what else decides on plans, which is the same on all
};

enum class StreamPart : std::uint8_t { kDense, kSliceValues, kSliceIndices };

struct Stream {
  std::size_t pair = 0;
  StreamPart part = StreamPart::kDense;
  collective::Task task;
  std::vector<std::size_t> replica_elements;
  std::size_t outer = 1;  // concatenation: rows of the result to which every replica contributes
  DType result_dtype = DType::kFloat32;
  Shape result_shape;
  std::optional<Shape> dense_shape{};  // kSliceValues: that a replica names
  // Calls that have parts: which replicas and results of the pair this one is about (by number; none: all),
  // and how many elements come before the part in each of them.
  std::vector<std::uint32_t> replica_numbers{};
  std::vector<std::uint32_t> result_numbers{};
  std::size_t input_offset = 0;
  std::size_t output_offset = 0;
  // Replicas of the task in whose memory results lie, and which are copied elsewhere before the call, so that
  // its task is that of streams whose results lie elsewhere (planner/pack.h).
  std::vector<std::uint32_t> copied_replicas{};
};

struct Resolved {
  std::vector<Device> devices;            // by their number in tasks
  std::vector<std::int32_t> device_rank;  // of each device, the worker that owns it
  std::vector<Stream> streams;            // in the order of the pairs
};

// What every call checks first, whatever else it is given.
void validate_options(ReduceOp op, const CommunicationOptions& options);

// That the operation takes what it is given: all but SUM and MEAN are for dense values.
void validate_operation(const Request& request);

Resolved resolve(const Request& request, const Placement& placement);

// "all_gather": what a call is called.
std::string_view name_of(CallKind kind) noexcept;

// "value" for a single reduce, "pair 3" in a batch: how messages name a pair.
std::string name_of_pair(CallKind kind, std::size_t pair);

}  // namespace onesum::planner
