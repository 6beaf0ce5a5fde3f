// The kernels that make clusters and objects. They give handles; what these stand for lives as long as the
// last of them.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tensorflow/core/framework/op_kernel.h>
#include <tensorflow/core/framework/resource_mgr.h>

#include <onesum/onesum.h>

#include "call_kernel.h"

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

template <class T>
T attribute(tf::OpKernelConstruction* construction, const char* name) {
  T value{};
  const absl::Status status = construction->GetAttr(name, &value);
  if (!status.ok()) construction->SetStatus(status);
  return value;
}

template <class Resource>
void set_handle(tf::OpKernelContext* context, Resource* resource) {
  tf::Tensor* output = nullptr;
  OP_REQUIRES_OK(context, context->allocate_output(0, tf::TensorShape({}), &output));
  output->scalar<tf::ResourceHandle>()() =
      tf::ResourceHandle::MakeRefCountingHandle(resource, context->device()->name());
}

class ClusterKernel : public tf::OpKernel {
 public:
  explicit ClusterKernel(tf::OpKernelConstruction* construction)
      : OpKernel(construction),
        source_(attribute<std::string>(construction, "source")),
        given_(reinterpret_cast<const Cluster*>(attribute<std::int64_t>(construction, "address"))),
        worker_devices_(attribute<std::vector<std::string>>(construction, "worker_devices")),
        devices_per_worker_(attribute<int>(construction, "devices_per_worker")) {}

  void Compute(tf::OpKernelContext* context) override {
    std::optional<Cluster> cluster;
    OP_REQUIRES_OK(context, status_of([&] { cluster = make(); }));
    set_handle(context, new Sequence(std::move(*cluster)));
  }

 private:
  Cluster make() const {
    if (source_ == "environment") return Cluster::from_environment();
    if (source_ == "given") return *given_;
    if (source_ == "embedded") return Cluster::embedded(worker_devices_, devices_per_worker_);
    return Cluster::local();
  }

  const std::string source_;
  const Cluster* const given_;
  const std::vector<std::string> worker_devices_;
  const int devices_per_worker_;
};

class ObjectKernel : public tf::OpKernel {
 public:
  explicit ObjectKernel(tf::OpKernelConstruction* construction)
      : OpKernel(construction),
        kind_(attribute<std::string>(construction, "kind")),
        reduce_to_device_(attribute<std::string>(construction, "reduce_to_device")),
        all_reduce_(attribute<std::string>(construction, "all_reduce")),
        num_packs_(attribute<int>(construction, "num_packs")),
        small_bytes_(attribute<std::int64_t>(construction, "agg_small_grads_max_bytes")),
        small_group_(attribute<int>(construction, "agg_small_grads_max_group")),
        worker_devices_(attribute<std::vector<std::string>>(construction, "worker_devices")),
        num_gpus_per_worker_(attribute<int>(construction, "num_gpus_per_worker")) {}

  void Compute(tf::OpKernelContext* context) override {
    tf::core::RefCountPtr<Sequence> sequence;
    OP_REQUIRES_OK(context, tf::LookupResource(context, tf::HandleFromInput(context, 0), &sequence));
    std::unique_ptr<CrossDeviceOps> ops;
    OP_REQUIRES_OK(context, status_of([&] { ops = make(sequence->cluster()); }));
    set_handle(context, new Object(std::move(ops), std::move(sequence)));
  }

 private:
  std::unique_ptr<CrossDeviceOps> make(const Cluster& cluster) const {
    if (kind_ == "AllReduceCrossDeviceOps") {
      return std::make_unique<AllReduceCrossDeviceOps>(all_reduce_, num_packs_, small_bytes_, small_group_,
                                                       cluster);
    }
    if (kind_ == "NcclAllReduce") return std::make_unique<NcclAllReduce>(num_packs_, cluster);
    if (kind_ == "HierarchicalCopyAllReduce") {
      return std::make_unique<HierarchicalCopyAllReduce>(num_packs_, cluster);
    }
    if (kind_ == "MultiWorkerAllReduce") {
      return std::make_unique<MultiWorkerAllReduce>(worker_devices_, num_gpus_per_worker_,
                                                    AllReduceSpecs(all_reduce_), num_packs_, small_bytes_,
                                                    small_group_, cluster);
    }
    std::optional<std::string> device;
    if (!reduce_to_device_.empty()) device = reduce_to_device_;
    return std::make_unique<ReductionToOneDevice>(device, AccumulationFn(), cluster);
  }

  const std::string kind_;
  const std::string reduce_to_device_;
  const std::string all_reduce_;
  const int num_packs_;
  const std::int64_t small_bytes_;
  const int small_group_;
  const std::vector<std::string> worker_devices_;
  const int num_gpus_per_worker_;
};

REGISTER_KERNEL_BUILDER(Name("OnesumCluster").Device(tf::DEVICE_CPU), ClusterKernel);
REGISTER_KERNEL_BUILDER(Name("OnesumObject").Device(tf::DEVICE_CPU), ObjectKernel);

}  // namespace
}  // namespace onesum::tf_bridge

// For the end of the process, when Python is there still.
extern "C" ONESUM_API void onesum_tensorflow_leave() {
  onesum::tf_bridge::Sequence::leave_all(std::chrono::seconds(10));
}
