// Tensors that travel together between devices, as one variant tensor of TensorFlow's.
//
// An edge of a graph from one device to another costs microseconds, and a model has hundreds of gradients on
// each device. What goes from a device to a call, and back, is therefore one edge. Nothing is copied.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tensorflow/core/framework/op_kernel.h>
#include <tensorflow/core/framework/tensor.h>
#include <tensorflow/core/framework/variant_tensor_data.h>

namespace onesum::tf_bridge {

struct Bundle {
  std::vector<tensorflow::Tensor> tensors;

  // What TensorFlow asks of the contents of a variant.
  std::string TypeName() const { return "onesum::Bundle"; }
  std::string DebugString() const { return "onesum::Bundle of " + std::to_string(tensors.size()); }
  void Encode(tensorflow::VariantTensorData* data) const;
  bool Decode(const tensorflow::VariantTensorData& data);
};

// That of an input. Throws invalid_argument if it is something else.
const Bundle& bundle_in(tensorflow::OpKernelContext& context, int input);

// That of an input, if nobody else can see it any more and it may be taken.
std::optional<Bundle> taken_bundle(tensorflow::OpKernelContext& context, int input, int output);

void set_bundle(tensorflow::OpKernelContext& context, int output, Bundle bundle);

}  // namespace onesum::tf_bridge
