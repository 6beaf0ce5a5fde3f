#include "bundle.h"

#include <memory>
#include <utility>

#include <tensorflow/core/framework/variant.h>
#include <tensorflow/core/framework/variant_op_registry.h>

#include <onesum/error.h>

namespace onesum::tf_bridge {

namespace tf = ::tensorflow;

void Bundle::Encode(tf::VariantTensorData* data) const {
  data->set_type_name(TypeName());
  for (const tf::Tensor& tensor : tensors) *data->add_tensors() = tensor;
}

bool Bundle::Decode(const tf::VariantTensorData& data) {
  tensors = data.tensors();
  return true;
}

const Bundle& bundle_in(tf::OpKernelContext& context, int input) {
  const tf::Tensor& tensor = context.input(input);
  const Bundle* const bundle = tensor.dims() == 0 ? tensor.scalar<tf::Variant>()().get<Bundle>() : nullptr;
  if (bundle != nullptr) return *bundle;
  throw Error(ErrorCode::kInvalidArgument, "input " + std::to_string(input) + " is " + tensor.DebugString() +
                                               "; expected an output of OnesumBundle");
}

std::optional<Bundle> taken_bundle(tf::OpKernelContext& context, int input, int output) {
  const std::unique_ptr<tf::Tensor> forwarded =
      context.forward_input(input, output, tf::DT_VARIANT, tf::TensorShape({}), tf::DEVICE_MEMORY,
                            context.output_alloc_attr(output));
  if (!forwarded) return {};
  return std::move(*forwarded->scalar<tf::Variant>()().get<Bundle>());
}

void set_bundle(tf::OpKernelContext& context, int output, Bundle bundle) {
  tf::Tensor tensor(tf::DT_VARIANT, tf::TensorShape({}));
  tensor.scalar<tf::Variant>()() = std::move(bundle);
  context.set_output(output, tensor);
}

namespace {

class BundleKernel : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* context) override {
    Bundle bundle;
    for (int i = 0; i < context->num_inputs(); ++i) bundle.tensors.push_back(context->input(i));
    set_bundle(*context, 0, std::move(bundle));
  }
};

class UnbundleKernel : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* context) override {
    const Bundle* const bundle = context->input(0).scalar<tf::Variant>()().get<Bundle>();
    const auto outputs = static_cast<std::size_t>(context->num_outputs());
    OP_REQUIRES(context, bundle != nullptr && bundle->tensors.size() == outputs,
                absl::InternalError("OnesumUnbundle: the input is no bundle of as many tensors"));
    for (std::size_t i = 0; i < outputs; ++i) {
      context->set_output(static_cast<int>(i), bundle->tensors[i]);
    }
  }
};

REGISTER_UNARY_VARIANT_DECODE_FUNCTION(Bundle, "onesum::Bundle");
REGISTER_KERNEL_BUILDER(Name("OnesumBundle").Device(tf::DEVICE_CPU), BundleKernel);
REGISTER_KERNEL_BUILDER(Name("OnesumUnbundle").Device(tf::DEVICE_CPU), UnbundleKernel);

}  // namespace
}  // namespace onesum::tf_bridge
