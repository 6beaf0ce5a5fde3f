// All-reduce of sparse (COO) tensors, such as gradients of embeddings.
//
// Their rows are IndexedSlices to the library: those of all members are concatenated, and those with the same
// index added in rank order. The result is coalesced, on every member.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <onesum/cross_device_ops.h>

namespace onesum::bridge {

// Refuses what cannot be all-reduced so: other operations than sums and means, and other devices than CPUs.
void check_sparse(const at::Tensor& tensor, const c10d::ReduceOp& op);

// In place.
void all_reduce_sparse(CrossDeviceOps& ops, const at::Tensor& tensor, const c10d::ReduceOp& op,
                       const CommunicationOptions& options);

}  // namespace onesum::bridge
