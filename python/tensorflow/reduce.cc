// The reduction of dense tensors, many at a time.
//
// A result is written over its replica where TensorFlow allows it, that is, where nobody else holds the
// replica; else into memory of the library's pool. All devices of this bridge are memory of the host, so that
// one result serves all of them: only where the algorithm has a result on each device, as over processes,
// does each replica get its own.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "call_kernel.h"
#include "values.h"

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

class ReduceKernel : public CallKernel {
 public:
  explicit ReduceKernel(tf::OpKernelConstruction* construction)
      : CallKernel(construction), op_(reduce_op_of(construction)) {
    int replicas = 1;
    OP_REQUIRES_OK(construction, construction->GetAttr("replicas", &replicas));
    replicas_ = static_cast<std::size_t>(replicas);
    const int values = construction->num_inputs() - kFirstValue;
    OP_REQUIRES(construction, values % replicas == 0,
                absl::InvalidArgumentError("OnesumReduce: values are not as many for each replica"));
    tensors_ = static_cast<std::size_t>(values) / replicas_;
  }

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const std::vector<Device> devices = object.replica_devices(replicas_);
    const auto outputs = static_cast<std::size_t>(context.num_outputs());
    std::vector<std::vector<Tensor>> values(tensors_);
    std::vector<std::vector<Tensor>> results(tensors_);
    for (std::size_t i = 0; i < tensors_ * replicas_; ++i) {
      const int input = kFirstValue + static_cast<int>(i);
      const Device& device = devices[i / tensors_];
      // Before the input is forwarded, and so taken from the context.
      values[i % tensors_].push_back(borrowed(context.input(input), device));
      if (i < outputs) {
        results[i % tensors_].push_back(
            make_result(context, input, static_cast<int>(i), values[i % tensors_].back()));
      }
    }
    std::vector<PerReplica> all_values;
    std::vector<PerReplica> all_results;
    for (std::size_t i = 0; i < tensors_; ++i) {
      all_values.emplace_back(std::move(values[i]));
      all_results.emplace_back(std::move(results[i]));
    }
    object.ops().batch_reduce_into(op_, all_values, all_results, options());
  }

 private:
  // The memory of an output, which it sets.
  Tensor make_result(tf::OpKernelContext& context, int input, int output, const Tensor& replica) const {
    const DType dtype = result_dtype(op_, replica.dtype());
    const std::unique_ptr<tf::Tensor> forwarded =
        context.forward_input(input, output, data_type_of(dtype), context.input(input).shape(),
                              tf::DEVICE_MEMORY, context.output_alloc_attr(output));
    if (forwarded) {
      context.set_output(output, *forwarded);
      return replica;
    }
    Tensor fresh = Tensor::empty(dtype, replica.shape(), replica.device());
    context.set_output(output, adopted(fresh));
    return fresh;
  }

  const ReduceOp op_;
  std::size_t replicas_ = 1;
  std::size_t tensors_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("OnesumReduce").Device(tf::DEVICE_CPU), ReduceKernel);

}  // namespace
}  // namespace onesum::tf_bridge
