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
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/options.h>
#include <onesum/shape.h>

#include "collective/task.h"

namespace onesum::planner {

struct TensorInfo {
  DType dtype = DType::kFloat32;
  Shape shape;
  Device device;
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
};

enum class CallKind : std::uint8_t { kReduce, kBatchReduce, kBroadcast, kGather };

struct Request {
  CallKind kind = CallKind::kBatchReduce;
  ReduceOp op = ReduceOp::kSum;
  int axis = 0;  // kGather
  int root = 0;  // kBroadcast: the worker whose value counts
  bool into = false;
  bool only_planned = false;  // never run: devices need no engine
  CommunicationOptions options;
  std::vector<PairInfo> pairs;
  std::string policy{};  // of several processes: what else decides on plans, which is the same on all
};

// Which devices take part, and what completes a partial device string.
struct Placement {
  Device defaults;                       // complete
  std::vector<Device> devices;           // complete; none: every device of the workers
  std::vector<Device> workers{};         // job, replica and task of each rank; none: the default's alone
  std::vector<Device> others{};          // that take part beside `devices`
  bool all_workers = false;              // what is all-reduced has a replica on every worker
  std::vector<std::int32_t> machines{};  // of each rank; none: all are on one
  bool by_network = false;               // between ranks of one machine, too
  bool workers_share_gpus = false;       // all are in one process: GPU:1 of one is GPU:1 of another
  // Why no engine serves a device of this process that is not a CPU; empty: one does, or it is another
  // process's. Null: none does.
  std::function<std::string(const Device& device)> why_not_served{};
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
};

struct Resolved {
  std::vector<Device> devices;            // by their number in tasks
  std::vector<std::int32_t> device_rank;  // of each device, the worker that owns it
  std::vector<Stream> streams;            // in the order of the pairs
};

// What every call checks first, whatever else it is given.
void validate_options(ReduceOp op, const CommunicationOptions& options);

// `device` completed; refused if it does not take part, or has no engine. Where calls are only planned it
// needs none, if it is one of those that the placement names.
Device place(const Device& device, const Placement& placement, const std::string& what,
             bool only_planned = false);

// The rank of the worker that owns a placed device.
std::int32_t rank_of(const Device& device, const Placement& placement);

// What a destination string stands for: its device on every worker that it may mean, in rank order, if it
// names no task; otherwise itself.
std::vector<Device> on_every_worker(const Device& device, const Placement& placement);

Resolved resolve(const Request& request, const Placement& placement);

// "value" for a single reduce, "pair 3" in a batch: how messages name a pair.
std::string name_of_pair(CallKind kind, std::size_t pair);

}  // namespace onesum::planner
