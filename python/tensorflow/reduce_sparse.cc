// The reduction of indexed slices, many at a time: a concatenation of all replicas' rows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bundle.h"
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

// Bundles have all values, then all indices and, if there are, all dense shapes.
class ReduceSparseKernel : public CallKernel {
 public:
  explicit ReduceSparseKernel(tf::OpKernelConstruction* construction)
      : CallKernel(construction), op_(reduce_op_of(construction)) {
    OP_REQUIRES_OK(construction, construction->GetAttr("has_dense_shapes", &has_dense_shapes_));
  }

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const std::vector<Device> devices =
        object.replica_devices(static_cast<std::size_t>(context.num_inputs() - kFirstValue));
    std::vector<std::vector<Value>> values;
    for (std::size_t replica = 0; replica < devices.size(); ++replica) {
      const std::vector<tf::Tensor>& tensors =
          bundle_in(context, kFirstValue + static_cast<int>(replica)).tensors;
      const std::size_t count = tensors.size() / (has_dense_shapes_ ? 3 : 2);
      values.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        std::optional<Shape> dense_shape;
        if (has_dense_shapes_) dense_shape = read_shape(tensors[2 * count + i]);
        values[i].emplace_back(IndexedSlices{borrowed(tensors[i], devices[replica]),
                                             borrowed(tensors[count + i], devices[replica]), dense_shape});
      }
    }
    std::vector<ValueDestination> pairs;
    for (std::vector<Value>& value : values) pairs.push_back({PerReplica(std::move(value)), object.here()});
    const std::vector<Mirrored> results = object.ops().batch_reduce(op_, pairs, options());
    Bundle bundle;
    for (const Mirrored& result : results) bundle.tensors.push_back(adopted(result.slices().values));
    for (const Mirrored& result : results) bundle.tensors.push_back(adopted(result.slices().indices));
    set_bundle(context, 0, std::move(bundle));
  }

 private:
  const ReduceOp op_;
  bool has_dense_shapes_ = false;
};

REGISTER_KERNEL_BUILDER(Name("OnesumReduceSparse").Device(tf::DEVICE_CPU), ReduceSparseKernel);

}  // namespace
}  // namespace onesum::tf_bridge
