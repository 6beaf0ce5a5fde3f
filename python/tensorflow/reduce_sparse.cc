// The reduction of indexed slices, many at a time: a concatenation of all replicas' rows.
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "call_kernel.h"
#include "values.h"

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

Shape read_shape(const tf::Tensor& tensor) {
  std::vector<std::int64_t> extents;
  for (std::int64_t i = 0; i < tensor.NumElements(); ++i) {
    extents.push_back(tensor.dtype() == tf::DT_INT32 ? tensor.flat<std::int32_t>()(i)
                                                     : tensor.flat<std::int64_t>()(i));
  }
  return Shape(extents);
}

class ReduceSparseKernel : public CallKernel {
 public:
  explicit ReduceSparseKernel(tf::OpKernelConstruction* construction)
      : CallKernel(construction), op_(reduce_op_of(construction)) {
    int replicas = 1;
    OP_REQUIRES_OK(construction, construction->GetAttr("replicas", &replicas));
    replicas_ = static_cast<std::size_t>(replicas);
    tensors_ = static_cast<std::size_t>(construction->num_outputs()) / 2;
  }

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    tf::OpInputList values;
    tf::OpInputList indices;
    tf::OpInputList dense_shapes;
    check(context.input_list("values", &values));
    check(context.input_list("indices", &indices));
    check(context.input_list("dense_shapes", &dense_shapes));
    const std::vector<Device> devices = object.replica_devices(replicas_);
    std::vector<std::vector<Value>> replicas(tensors_);
    for (std::size_t i = 0; i < tensors_ * replicas_; ++i) {
      const int input = static_cast<int>(i);
      const Device& device = devices[i / tensors_];
      std::optional<Shape> dense_shape;
      if (dense_shapes.size() > 0) dense_shape = read_shape(dense_shapes[input]);
      replicas[i % tensors_].emplace_back(
          IndexedSlices{borrowed(values[input], device), borrowed(indices[input], device), dense_shape});
    }
    std::vector<ValueDestination> pairs;
    for (std::vector<Value>& value : replicas) {
      pairs.push_back({PerReplica(std::move(value)), object.here()});
    }
    const std::vector<Mirrored> results = object.ops().batch_reduce(op_, pairs, options());
    for (std::size_t i = 0; i < tensors_; ++i) {
      const IndexedSlices& slices = results[i].slices();
      context.set_output(static_cast<int>(i), adopted(slices.values));
      context.set_output(static_cast<int>(tensors_ + i), adopted(slices.indices));
    }
  }

 private:
  static void check(const absl::Status& status) {
    if (!status.ok()) throw Error(ErrorCode::kInternal, std::string(status.message()));
  }

  const ReduceOp op_;
  std::size_t replicas_ = 1;
  std::size_t tensors_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("OnesumReduceSparse").Device(tf::DEVICE_CPU), ReduceSparseKernel);

}  // namespace
}  // namespace onesum::tf_bridge
