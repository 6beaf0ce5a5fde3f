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

class ReduceKernel : public CallKernel {
 public:
  explicit ReduceKernel(tf::OpKernelConstruction* construction)
      : CallKernel(construction), op_(reduce_op_of(construction)) {}

 protected:
  void call(tf::OpKernelContext& context, const Object& object) const override {
    const std::vector<Device> devices =
        object.replica_devices(static_cast<std::size_t>(context.num_inputs() - kFirstValue));
    std::vector<std::vector<Tensor>> values;
    std::vector<std::vector<Tensor>> results;
    std::list<Bundle> held;     // until the call is over
    std::vector<Bundle> given;  // to TensorFlow afterwards
    for (std::size_t replica = 0; replica < devices.size(); ++replica) {
      const int input = kFirstValue + static_cast<int>(replica);
      const int output = static_cast<int>(replica);
      const bool has_result = output < context.num_outputs();
      std::optional<Bundle> taken;
      if (has_result) taken = taken_bundle(context, input, output);
      const bool may_write = taken.has_value();
      const Bundle& bundle = taken ? held.emplace_back(*std::move(taken)) : bundle_in(context, input);
      values.resize(bundle.tensors.size());
      results.resize(bundle.tensors.size());
      if (has_result) given.emplace_back();
      for (std::size_t i = 0; i < bundle.tensors.size(); ++i) {
        values[i].push_back(borrowed(bundle.tensors[i], devices[replica]));
        if (!has_result) continue;
        const DType dtype = result_dtype(op_, values[i].back().dtype());
        if (may_write && dtype == values[i].back().dtype() && bundle.tensors[i].RefCountIsOne()) {
          results[i].push_back(values[i].back());
          given.back().tensors.push_back(bundle.tensors[i]);
        } else {
          results[i].push_back(Tensor::empty(dtype, values[i].back().shape(), devices[replica]));
          given.back().tensors.push_back(adopted(results[i].back()));
        }
      }
    }
    reduce(object, std::move(values), std::move(results));
    for (std::size_t i = 0; i < given.size(); ++i)
      set_bundle(context, static_cast<int>(i), std::move(given[i]));
  }

 private:
  void reduce(const Object& object, std::vector<std::vector<Tensor>> values,
              std::vector<std::vector<Tensor>> results) const {
    std::vector<PerReplica> all_values;
    std::vector<PerReplica> all_results;
    for (std::size_t i = 0; i < values.size(); ++i) {
      all_values.emplace_back(std::move(values[i]));
      all_results.emplace_back(std::move(results[i]));
    }
    object.ops().batch_reduce_into(op_, all_values, all_results, options());
  }

  const ReduceOp op_;
};

REGISTER_KERNEL_BUILDER(Name("OnesumReduce").Device(tf::DEVICE_CPU), ReduceKernel);

}  // namespace
}  // namespace onesum::tf_bridge
