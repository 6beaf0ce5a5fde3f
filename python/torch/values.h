// PyTorch's tensors as the library's.
//
// Every tensor is one row of elements to the library, for c10d asks for equal numbers of elements and not for
// equal shapes. A tensor that is dense, row-major and plain is used where it lies; any other is copied in
// before a call and out after it, in the call's turn.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <onesum/options.h>
#include <onesum/tensor.h>

namespace onesum::bridge {

// What a call needs of its tensors: arithmetic, which not every type has, or only to be moved.
enum class Use : std::uint8_t { kReduced, kMoved };

// Refuses (as Python's ValueError) what is not a dense tensor on a CPU; `call` is its name.
void check_dense(const at::Tensor& tensor, const char* call);
// The one of a list that c10d passes for historical reasons.
const at::Tensor& only_one_of(const std::vector<at::Tensor>& tensors, const char* call);
// That all are dense and of one type.
void check_alike(const std::vector<at::Tensor>& tensors, const at::Tensor& like, const char* call);

// The operation of the library that does what c10d's does to elements of this type. The sum of bools is their
// or, and the product their and. Refused are means of integers, whose results PyTorch has no room for.
ReduceOp reduce_op_of(const c10d::ReduceOp& op, at::ScalarType type, const char* call);

// Values to be reduced as `op` wants them: as they are but for PREMUL_SUM, which scales a copy.
at::Tensor scaled_for(const c10d::ReduceOp& op, const at::Tensor& tensor);

bool is_in_place(const at::Tensor& tensor);

// A tensor, or the concatenation of several, as one row for the time of a call. Only the thread in whose turn
// the call runs may use it.
class Row {
 public:
  // With the elements that the tensors have now.
  static Row filled(const std::vector<at::Tensor>& tensors, Use use);
  // With any: for results.
  static Row blank(const std::vector<at::Tensor>& tensors, Use use);

  const Tensor& tensor() const noexcept { return tensor_; }
  const at::Tensor& at_tensor() const noexcept { return row_; }
  // Where the row is a copy, writes it to the tensors.
  void give_back() const;

 private:
  Row(const std::vector<at::Tensor>& tensors, Use use, bool is_filled);

  std::vector<at::Tensor> tensors_;
  at::Tensor row_;
  bool is_copy_ = false;
  Tensor tensor_;
};

// Whether all have as many elements.
bool have_equal_sizes(const std::vector<at::Tensor>& tensors);

}  // namespace onesum::bridge
