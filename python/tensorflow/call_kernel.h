// What the kernels of all calls have in common: an asynchronous kernel that runs in the turn of its cluster's
// sequence. Inputs 0 and 1 are the handles of the Sequence and of the Object; the first makes TensorFlow
// order the calls of a function. Failures of the library are TensorFlow's errors, with the same message.
#pragma once

#include <tensorflow/core/framework/op_kernel.h>

#include <onesum/options.h>

#include "object.h"

namespace onesum::tf_bridge {

inline constexpr int kFirstValue = 2;  // input

// Runs `what` and gives what it threw as a status.
absl::Status status_of(const std::function<void()>& what) noexcept;

class CallKernel : public tensorflow::AsyncOpKernel {
 public:
  explicit CallKernel(tensorflow::OpKernelConstruction* construction);

  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) final;

 protected:
  // Makes the call and sets the outputs. Throws.
  virtual void call(tensorflow::OpKernelContext& context, const Object& object) const = 0;

  const CommunicationOptions& options() const noexcept { return options_; }

 private:
  CommunicationOptions options_;
  bool is_waited_for_ = false;
};

// Of the attribute "reduce_op".
ReduceOp reduce_op_of(tensorflow::OpKernelConstruction* construction);

}  // namespace onesum::tf_bridge
