#include "values.h"

#include <algorithm>
#include <optional>
#include <string>

#include <onesum/device.h>
#include <onesum/dtype.h>

namespace onesum::bridge {
namespace {

std::optional<DType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Bool:
      return DType::kBool;
    case at::ScalarType::Byte:
      return DType::kUInt8;
    case at::ScalarType::Char:
      return DType::kInt8;
    case at::ScalarType::UInt16:
      return DType::kUInt16;
    case at::ScalarType::Short:
      return DType::kInt16;
    case at::ScalarType::UInt32:
      return DType::kUInt32;
    case at::ScalarType::Int:
      return DType::kInt32;
    case at::ScalarType::UInt64:
      return DType::kUInt64;
    case at::ScalarType::Long:
      return DType::kInt64;
    case at::ScalarType::Half:
      return DType::kFloat16;
    case at::ScalarType::BFloat16:
      return DType::kBFloat16;
    case at::ScalarType::Float:
      return DType::kFloat32;
    case at::ScalarType::Double:
      return DType::kFloat64;
    case at::ScalarType::ComplexFloat:
      return DType::kComplex64;
    case at::ScalarType::ComplexDouble:
      return DType::kComplex128;
    default:
      return std::nullopt;
  }
}

// What moves elements of a type that the library does not know.
DType dtype_of_size(std::size_t bytes) {
  switch (bytes) {
    case 2:
      return DType::kUInt16;
    case 4:
      return DType::kUInt32;
    case 8:
      return DType::kUInt64;
    default:
      return DType::kUInt8;
  }
}

Tensor borrowed(const at::Tensor& dense, Use use) {
  const std::optional<DType> known = dtype_of(dense.scalar_type());
  TORCH_CHECK_TYPE(known || use == Use::kMoved, "onesum: tensors of type ", dense.scalar_type(),
                   " can be moved but not reduced");
  const DType dtype = known ? *known : dtype_of_size(dense.element_size());
  const std::size_t bytes = dense.nbytes();
  const auto elements = static_cast<std::int64_t>(bytes / size_of(dtype));
  static const Device cpu("CPU:0");
  return Tensor::borrow(dense.mutable_data_ptr(), dtype, Shape{elements}, cpu);
}

// Whether the tensors lie one after the other in memory, in order.
bool are_adjacent(const std::vector<at::Tensor>& tensors) {
  const char* next = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (!is_in_place(tensor)) return false;
    if (tensor.numel() == 0) continue;
    const auto* memory = static_cast<const char*>(tensor.const_data_ptr());
    if (next != nullptr && memory != next) return false;
    if (next != nullptr && !tensor.is_alias_of(tensors.front())) return false;
    next = memory + tensor.nbytes();
  }
  return true;
}

// All of them as one tensor, without a copy.
at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  const auto has_some = [](const at::Tensor& tensor) { return tensor.numel() > 0; };
  const auto first = std::find_if(tensors.begin(), tensors.end(), has_some);
  if (first == tensors.end()) return tensors.front().reshape({-1});
  return first->as_strided({elements}, {1}, first->storage_offset());
}

}  // namespace

void check_dense(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(tensor.defined(), "onesum: ", call, " of an undefined tensor");
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "onesum: ", call, " of a tensor on ", tensor.device(),
                    "; the backend is for CPU tensors (use backend=\"cpu:onesum,cuda:nccl\" for both)");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "onesum: ", call, " of a tensor with layout ",
                    tensor.layout(), "; only all_reduce takes sparse ones");
}

const at::Tensor& only_one_of(const std::vector<at::Tensor>& tensors, const char* call) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "onesum: ", call, " of ", tensors.size(),
                    " tensors; expected one for this process");
  return tensors.front();
}

void check_alike(const std::vector<at::Tensor>& tensors, const at::Tensor& like, const char* call) {
  for (const at::Tensor& tensor : tensors) {
    check_dense(tensor, call);
    TORCH_CHECK_VALUE(tensor.scalar_type() == like.scalar_type(), "onesum: ", call, " of tensors of types ",
                      like.scalar_type(), " and ", tensor.scalar_type(), "; expected one type");
  }
}

ReduceOp reduce_op_of(const c10d::ReduceOp& op, at::ScalarType type, const char* call) {
  const bool is_bool = type == at::ScalarType::Bool;
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return is_bool ? ReduceOp::kBitOr : ReduceOp::kSum;
    case c10d::ReduceOp::PRODUCT:
      return is_bool ? ReduceOp::kBitAnd : ReduceOp::kProduct;
    case c10d::ReduceOp::MIN:
      return ReduceOp::kMin;
    case c10d::ReduceOp::MAX:
      return ReduceOp::kMax;
    case c10d::ReduceOp::BAND:
      return ReduceOp::kBitAnd;
    case c10d::ReduceOp::BOR:
      return ReduceOp::kBitOr;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::kBitXor;
    case c10d::ReduceOp::AVG:
      TORCH_CHECK_TYPE(!at::isIntegralType(type, true), "onesum: ", call, " with ReduceOp.AVG of ", type,
                       ", whose means are no integers; use ReduceOp.SUM and divide, or a floating type");
      return ReduceOp::kMean;
    case c10d::ReduceOp::PREMUL_SUM:
      TORCH_CHECK_TYPE(!is_bool, "onesum: ", call, " with ReduceOp.PREMUL_SUM of ", type);
      return ReduceOp::kSum;
    default:
      TORCH_CHECK_VALUE(false, "onesum: ", call, " with an operation that c10d does not name");
  }
}

at::Tensor scaled_for(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return tensor;
  const auto* factor = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(factor != nullptr, "onesum: ReduceOp.PREMUL_SUM without a factor");
  if (factor->tensor_factor.defined()) return tensor.mul(factor->tensor_factor).to(tensor.scalar_type());
  return tensor.mul(factor->double_factor).to(tensor.scalar_type());
}

bool is_in_place(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

Row::Row(const std::vector<at::Tensor>& tensors, Use use, bool is_filled) : tensors_(tensors) {
  if (are_adjacent(tensors)) {
    row_ = joined(tensors);
  } else {
    is_copy_ = true;
    std::int64_t elements = 0;
    for (const at::Tensor& tensor : tensors) elements += tensor.numel();
    row_ = at::empty({elements}, tensors.front().options());
    std::int64_t first = 0;
    for (const at::Tensor& tensor : tensors) {
      if (is_filled) row_.narrow(0, first, tensor.numel()).view(tensor.sizes()).copy_(tensor);
      first += tensor.numel();
    }
  }
  tensor_ = borrowed(row_, use);
}

Row Row::filled(const std::vector<at::Tensor>& tensors, Use use) { return {tensors, use, true}; }
Row Row::blank(const std::vector<at::Tensor>& tensors, Use use) { return {tensors, use, false}; }

void Row::give_back() const {
  if (!is_copy_) return;
  std::int64_t first = 0;
  for (const at::Tensor& tensor : tensors_) {
    tensor.copy_(row_.narrow(0, first, tensor.numel()).view(tensor.sizes()));
    first += tensor.numel();
  }
}

bool have_equal_sizes(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.numel() == tensors.front().numel(); });
}

}  // namespace onesum::bridge
