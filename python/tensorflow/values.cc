#include "values.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tensorflow/core/framework/allocation_description.pb.h>
#include <tensorflow/core/framework/types.h>

#include <onesum/error.h>

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

// In the order of DType.
constexpr std::array<tf::DataType, kNumDTypes> kDataTypes = {
    tf::DT_BOOL,     tf::DT_UINT8, tf::DT_INT8,   tf::DT_UINT16,    tf::DT_INT16,
    tf::DT_UINT32,   tf::DT_INT32, tf::DT_UINT64, tf::DT_INT64,     tf::DT_HALF,
    tf::DT_BFLOAT16, tf::DT_FLOAT, tf::DT_DOUBLE, tf::DT_COMPLEX64, tf::DT_COMPLEX128};

class PoolBuffer : public tf::TensorBuffer {
 public:
  explicit PoolBuffer(const Tensor& tensor) : TensorBuffer(tensor.memory()), tensor_(tensor) {}

  std::size_t size() const override { return tensor_.bytes(); }
  tf::TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tf::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<std::int64_t>(tensor_.bytes()));
    description->set_allocator_name("onesum");
  }

 private:
  const Tensor tensor_;
};

}  // namespace

DType dtype_of(tf::DataType type) {
  for (std::size_t i = 0; i < kDataTypes.size(); ++i) {
    if (kDataTypes[i] == type) return static_cast<DType>(i);
  }
  std::string known;
  for (const tf::DataType each : kDataTypes) known += (known.empty() ? "" : ", ") + tf::DataTypeString(each);
  throw Error(ErrorCode::kInvalidArgument,
              "a tensor is of TensorFlow's type " + tf::DataTypeString(type) + "; onesum has " + known);
}

tf::DataType data_type_of(DType dtype) { return kDataTypes[static_cast<std::size_t>(dtype)]; }

Shape shape_of(const tf::TensorShape& shape) {
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < shape.dims(); ++axis) extents.push_back(shape.dim_size(axis));
  return Shape(extents);
}

Tensor borrowed(const tf::Tensor& tensor, const Device& device) {
  return Tensor::borrow(tensor.data(), dtype_of(tensor.dtype()), shape_of(tensor.shape()), device);
}

tf::Tensor adopted(const Tensor& tensor) {
  const tf::TensorShape shape(tensor.shape().extents());
  if (tensor.bytes() == 0) return {data_type_of(tensor.dtype()), shape};
  return {data_type_of(tensor.dtype()), shape,
          tf::core::RefCountPtr<tf::TensorBuffer>(new PoolBuffer(tensor))};
}

}  // namespace onesum::tf_bridge
