// docs/semantics.md, section 4 and 9.7 to 9.9. Sparse values and such that mix dense and sparse components,
// with numbers known from elsewhere where there are two replicas or four.
#pragma once

#include <onesum/cross_device_ops.h>

#include "conformance/stage.h"

namespace onesum::testing {

// Rows come one after the other, in replica order, to all devices and to one; MEAN divides values only.
void check_concatenation(CrossDeviceOps& ops, const Stage& stage);
// Replicas with other numbers of rows, with none, and without a dense shape; one that names it is enough.
void check_uneven_rows(CrossDeviceOps& ops, const Stage& stage);
// Narrow indices stay narrow unless a replica has wide ones; the MEAN of integers gives floats.
void check_types_of_slices(CrossDeviceOps& ops, const Stage& stage);
// A value with dense and sparse components is dense.
void check_mixed_components(CrossDeviceOps& ops, const Stage& stage);
// Dense, sparse and mixed values in one batch keep their places.
void check_mixed_batch(CrossDeviceOps& ops, const Stage& stage);
// Each row once, ascending: returned, and into memory of the caller's.
void check_merged_rows(CrossDeviceOps& ops, const Stage& stage);

// All of it.
void check_sparse(CrossDeviceOps& ops, const Stage& stage);

}  // namespace onesum::testing
