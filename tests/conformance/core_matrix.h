// docs/semantics.md, 9.2. The core matrix of reductions and broadcasts: values A (replica i holds i) and B (i
// + 1), SUM and MEAN, to the same devices, to a Mirrored on a CPU and to that CPU's name, one by one and in
// batches of two.
#pragma once

#include <onesum/cross_device_ops.h>

#include "conformance/stage.h"

namespace onesum::testing {

void check_reduce(CrossDeviceOps& ops, const Stage& stage);
void check_batch_reduce(CrossDeviceOps& ops, const Stage& stage);
// Products, minima and maxima; for classes without an accumulation_fn.
void check_other_operations(CrossDeviceOps& ops, const Stage& stage);
// From worker `root`, of a value that is on any of the devices.
void check_broadcast(CrossDeviceOps& ops, const Stage& stage, int root = 0);

// All of it.
void check_core_matrix(CrossDeviceOps& ops, const Stage& stage);

}  // namespace onesum::testing
