// Broadcasts between workers, and gathers.
#include <cstddef>
#include <vector>

#include "call_kernel.h"
#include "values.h"

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

class BroadcastKernel : public CallKernel {
 public:
  using CallKernel::CallKernel;

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const Tensor value = borrowed(context.input(kFirstValue), object.replica_devices(1)[0]);
    context.set_output(0, adopted(object.ops().broadcast(value, object.here()).tensor()));
  }
};

class GatherKernel : public CallKernel {
 public:
  explicit GatherKernel(tf::OpKernelConstruction* construction) : CallKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("axis", &axis_));
  }

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const int replicas = context.num_inputs() - kFirstValue;
    const std::vector<Device> devices = object.replica_devices(static_cast<std::size_t>(replicas));
    std::vector<Tensor> values;
    for (int i = 0; i < replicas; ++i) {
      values.push_back(borrowed(context.input(kFirstValue + i), devices[static_cast<std::size_t>(i)]));
    }
    const Mirrored result = object.ops().gather(PerReplica(values), object.here(), axis_, options());
    context.set_output(0, adopted(result.tensor()));
  }

 private:
  int axis_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("OnesumBroadcast").Device(tf::DEVICE_CPU), BroadcastKernel);
REGISTER_KERNEL_BUILDER(Name("OnesumGather").Device(tf::DEVICE_CPU), GatherKernel);

}  // namespace
}  // namespace onesum::tf_bridge
