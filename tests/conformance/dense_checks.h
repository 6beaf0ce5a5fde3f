// docs/semantics.md, sections 2 to 5. Dense values: numbers known from elsewhere, every way to ask for their
// sums, gathers and broadcasts of every type, variables.
#pragma once

#include <onesum/cross_device_ops.h>

#include "conformance/stage.h"

namespace onesum::testing {

// Scalars 1, 2, 3, 4 and vectors [1,2], [3,4], [5,6], [7,8], by turns.
void check_known_numbers(CrossDeviceOps& ops, const Stage& stage);
// Tensors of several types and sizes, 0, 1 and primes among them, in one batch: returned, asynchronously,
// into other memory, in place in its variants, prepared. Sums are whole numbers that every type holds: any
// order gives them.
void check_ways(CrossDeviceOps& ops, const Stage& stage);
// Of every type, along every axis, with extents that differ.
void check_gather(CrossDeviceOps& ops, const Stage& stage);
// Of every type, bit by bit, and of slices.
void check_broadcast_of_types(CrossDeviceOps& ops, const Stage& stage);
// As values and as destinations; they stay as they are.
void check_variables(CrossDeviceOps& ops, const Stage& stage);
// Results share no memory with inputs or each other. Where all replicas are here.
void check_nothing_aliases(CrossDeviceOps& ops, const Stage& stage);

// All but the last.
void check_dense(CrossDeviceOps& ops, const Stage& stage);

}  // namespace onesum::testing
