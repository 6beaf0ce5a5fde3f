// Reads arguments (arguments.h) that may be written in several ways. What cannot be read is a TypeError that
// names the argument, what was found and what was expected. With the GIL.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <onesum/all_reduce_spec.h>
#include <onesum/cross_device_ops.h>
#include <onesum/values.h>

#include "arguments.h"
#include "arrays.h"

namespace onesum::python {

Device read(DeviceLike given, const char* what);                // Device, str
std::vector<Device> read(DevicesLike given, const char* what);  // a sequence of these
std::vector<std::string> read_names(DevicesLike given, const char* what);
DType read(DTypeLike given);                       // DType, NumPy dtype, scalar type, name
Shape read(ShapeLike given);                       // Shape, int, a sequence of ints
std::chrono::nanoseconds read(TimeoutLike given);  // timedelta, seconds
std::optional<std::chrono::milliseconds> read_timeout(TimeoutLike given);  // the same, or None
std::vector<std::vector<std::size_t>> read(SplitsLike given);
std::vector<int> read(RanksLike given);
AllReduceSpecs read(SpecsLike given);  // text, a line or a sequence of lines

// Tensor or IndexedSlices; an array is on `device` unless it says another.
Value read(ValueLike given, const Device& device, Access access, const char* what);
Tensor read(ArrayLike given, const Device& device, Access access, const char* what);

// PerReplica, Mirrored, Variable, a list of values (none: PerReplica()), or a value that is one replica, on
// CPU:0 if it is an array.
PerReplica read(PerReplicaLike given, Access access, const char* what);
std::vector<PerReplica> read(PerReplicasLike given, Access access, const char* what);
Destination read(DestinationLike given);
ValueDestination read(PairLike given);
std::vector<ValueDestination> read(PairsLike given);

// Values in replica order; arrays are on `devices`, or on CPU:0, CPU:1, … if there are none.
std::vector<Value> read_components(ValuesLike given, const std::optional<std::vector<Device>>& devices,
                                   Access access, const char* what);

// "CPU:index".
const Device& cpu(std::size_t index);

}  // namespace onesum::python
