// TensorFlow's tensors as the library's, and the library's as TensorFlow's, without copies.
#pragma once

#include <tensorflow/core/framework/tensor.h>
#include <tensorflow/core/framework/tensor_shape.h>
#include <tensorflow/core/framework/types.pb.h>

#include <onesum/tensor.h>

namespace onesum::tf_bridge {

// Throws invalid_argument for types that the library does not know.
DType dtype_of(tensorflow::DataType type);
tensorflow::DataType data_type_of(DType dtype);

Shape shape_of(const tensorflow::TensorShape& shape);

// The same memory. TensorFlow keeps it alive; the library only reads it unless it is passed as a result.
Tensor borrowed(const tensorflow::Tensor& tensor, const Device& device);

// The same memory, which the library's pool gets back when TensorFlow lets go of it. Memory that is mapped
// already, whereas TensorFlow's own is mapped page by page for every large tensor.
tensorflow::Tensor adopted(const Tensor& tensor);

}  // namespace onesum::tf_bridge
