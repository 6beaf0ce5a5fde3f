// The reduction of dense tensors, many at a time.
//
// A result is written over its replica where nobody else holds that; else into memory of the library's pool.
// All devices of this bridge are memory of the host, so that one result serves all of them: only where the
// algorithm has a result on each device, as over processes, does each replica get its own.
#include <cstddef>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "bundle.h"
#include "call_kernel.h"
#include "values.h"

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

// The tensors of a call, replica by replica. It keeps what the library reads.
class Batch {
 public:
  explicit Batch(ReduceOp op) : op_(op) {}

  // Those that have a result are added first.
  void add_replica(tf::OpKernelContext& context, int replica, const Device& device) {
    const int input = kFirstValue + replica;
    const bool has_result = replica < context.num_outputs();
    std::optional<Bundle> taken;
    if (has_result) taken = taken_bundle(context, input, replica);
    const bool is_ours = taken.has_value();
    const Bundle& bundle = taken ? held_.emplace_back(*std::move(taken)) : bundle_in(context, input);
    values_.resize(bundle.tensors.size());
    for (std::size_t i = 0; i < bundle.tensors.size(); ++i) {
      values_[i].push_back(borrowed(bundle.tensors[i], device));
    }
    if (has_result) add_results(bundle, is_ours);
  }

  void run(CrossDeviceOps& ops, const CommunicationOptions& options) {
    std::vector<PerReplica> values;
    std::vector<PerReplica> results;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values.emplace_back(std::move(values_[i]));
      results.emplace_back(std::move(results_[i]));
    }
    ops.batch_reduce_into(op_, values, results, options);
  }

  void set_outputs(tf::OpKernelContext& context) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      set_bundle(context, static_cast<int>(i), std::move(outputs_[i]));
    }
  }

 private:
  // Of the replica that was added last; `is_ours`: nobody else can see the bundle.
  void add_results(const Bundle& bundle, bool is_ours) {
    Bundle& output = outputs_.emplace_back();
    results_.resize(values_.size());
    for (std::size_t i = 0; i < bundle.tensors.size(); ++i) {
      const Tensor& replica = values_[i].back();
      const DType dtype = result_dtype(op_, replica.dtype());
      if (is_ours && dtype == replica.dtype() && bundle.tensors[i].RefCountIsOne()) {
        results_[i].push_back(replica);
        output.tensors.push_back(bundle.tensors[i]);
      } else {
        results_[i].push_back(Tensor::empty(dtype, replica.shape(), replica.device()));
        output.tensors.push_back(adopted(results_[i].back()));
      }
    }
  }

  const ReduceOp op_;
  std::list<Bundle> held_;
  std::vector<std::vector<Tensor>> values_;  // of each tensor
  std::vector<std::vector<Tensor>> results_;
  std::vector<Bundle> outputs_;
};

class ReduceKernel : public CallKernel {
 public:
  explicit ReduceKernel(tf::OpKernelConstruction* construction)
      : CallKernel(construction), op_(reduce_op_of(construction)) {}

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const int replicas = context.num_inputs() - kFirstValue;
    const std::vector<Device> devices = object.replica_devices(static_cast<std::size_t>(replicas));
    Batch batch(op_);
    for (int i = 0; i < replicas; ++i) batch.add_replica(context, i, devices[static_cast<std::size_t>(i)]);
    batch.run(object.ops(), options());
    batch.set_outputs(context);
  }

 private:
  const ReduceOp op_;
};

REGISTER_KERNEL_BUILDER(Name("OnesumReduce").Device(tf::DEVICE_CPU), ReduceKernel);

}  // namespace
}  // namespace onesum::tf_bridge
