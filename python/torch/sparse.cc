#include "sparse.h"

#include <cstring>
#include <vector>

#include <onesum/device.h>

#include "values.h"

namespace onesum::bridge {
namespace {

// How far apart neighbours of each sparse dimension are, counted in rows.
std::vector<std::int64_t> strides_of(const at::Tensor& tensor) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor.sparse_dim()), 1);
  for (std::size_t i = strides.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * tensor.size(static_cast<std::int64_t>(i));
  }
  return strides;
}

// The sparse dimensions as one.
at::Tensor flat_indices(const at::Tensor& coalesced) {
  const at::Tensor indices = coalesced.indices();
  at::Tensor flat = at::zeros({indices.size(1)}, indices.options());
  const std::vector<std::int64_t> strides = strides_of(coalesced);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    flat.add_(indices.select(0, static_cast<std::int64_t>(i)), strides[i]);
  }
  return flat;
}

at::Tensor full_indices(const at::Tensor& flat, const at::Tensor& like) {
  std::vector<at::Tensor> rows;
  const std::vector<std::int64_t> strides = strides_of(like);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    at::Tensor row = flat.floor_divide(strides[i]);
    rows.push_back(i == 0 ? row : row.remainder(like.size(static_cast<std::int64_t>(i))));
  }
  return at::stack(rows);
}

// A copy, of the shape that the library's tensor has no matter how it is seen there.
at::Tensor copied(const Tensor& from, at::IntArrayRef sizes, const at::TensorOptions& options) {
  at::Tensor copy = at::empty(sizes, options);
  if (from.bytes() > 0) std::memcpy(copy.mutable_data_ptr(), from.memory(), from.bytes());
  return copy;
}

Shape matrix(std::int64_t rows, std::int64_t columns) { return Shape{rows, columns}; }

}  // namespace

void check_sparse(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  TORCH_CHECK_VALUE(tensor.device().is_cpu() && tensor.is_sparse(),
                    "onesum: sparse all_reduce of a tensor on ", tensor.device(), " with layout ",
                    tensor.layout(), "; expected a COO tensor on a CPU");
  TORCH_CHECK_VALUE(op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG,
                    "onesum: all_reduce of a sparse tensor has ReduceOp.SUM and ReduceOp.AVG only");
  reduce_op_of(op, tensor.scalar_type(), "all_reduce");
}

void all_reduce_sparse(CrossDeviceOps& ops, const at::Tensor& tensor, const c10d::ReduceOp& op,
                       const CommunicationOptions& options) {
  const at::Tensor own = tensor.coalesce();
  const at::Tensor values = own.values().contiguous();
  std::vector<std::int64_t> row_sizes(values.sizes().begin() + 1, values.sizes().end());
  std::int64_t columns = 1;
  for (const std::int64_t size : row_sizes) columns *= size;
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < own.sparse_dim(); ++i) rows *= own.size(i);
  const at::Tensor indices = flat_indices(own);
  const std::int64_t count = indices.numel();
  const Row value_row = Row::filled({values}, Use::kReduced);
  const Row index_row = Row::filled({indices}, Use::kMoved);
  const IndexedSlices slices{value_row.tensor().reshaped(matrix(count, columns)), index_row.tensor(),
                             matrix(rows, columns)};
  CommunicationOptions merging = options;
  merging.sparse_rows = SparseRows::kMergeDuplicates;
  const Mirrored sum =
      ops.reduce(reduce_op_of(op, own.scalar_type(), "all_reduce"), slices, "CPU:0", merging);
  const IndexedSlices& merged = sum.slices();
  const auto all = static_cast<std::int64_t>(merged.indices.shape().elements());
  row_sizes.insert(row_sizes.begin(), all);
  const at::Tensor flat = copied(merged.indices, {all}, indices.options());
  const at::Tensor result = at::sparse_coo_tensor(
      full_indices(flat, own), copied(merged.values, row_sizes, values.options()), own.sizes());
  tensor.copy_(result.coalesce());
}

}  // namespace onesum::bridge
