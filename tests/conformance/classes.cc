#include "conformance/classes.h"

#include <stdexcept>

#include "support/tensors.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

template <class T>
Tensor sum_of(std::span<const Tensor> components) {
  std::vector<T> sum(components.front().shape().elements());
  for (const Tensor& component : components) {
    const std::vector<T> terms = contents<T>(component);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if constexpr (is_half<T>) {
        sum[i] = T::from_float(sum[i].to_float() + terms[i].to_float());
      } else {
        sum[i] = static_cast<T>(sum[i] + terms[i]);
      }
    }
  }
  return Tensor::from<T>(std::span<const T>(sum), components.front().shape(), components.front().device());
}

}  // namespace

const std::vector<std::string>& all_variants() {
  static const std::vector<std::string> all = {"plain",        "to_cpu0",
                                               "to_another",   "accumulation_fn",
                                               "nccl_1_pack",  "nccl_0_packs",
                                               "nccl_default", "hierarchical_copy_8_packs",
                                               "ring",         "hierarchical_copy_small"};
  return all;
}

std::unique_ptr<CrossDeviceOps> make_ops(const std::string& variant, const std::string& another,
                                         const std::optional<Cluster>& cluster) {
  const auto to_one_device = [&](const std::optional<std::string>& device,
                                 const AccumulationFn& function = {}) {
    return std::make_unique<ReductionToOneDevice>(device, function, cluster);
  };
  const auto all_reduce = [&](const char* algorithm, int num_packs, int max_bytes = 0) {
    return std::make_unique<AllReduceCrossDeviceOps>(algorithm, num_packs, max_bytes, 10, cluster);
  };
  if (variant == "plain") return to_one_device({});
  if (variant == "to_cpu0") return to_one_device("CPU:0");
  if (variant == "to_another") return to_one_device(another);
  if (variant == "accumulation_fn") return to_one_device({}, add_all);
  if (variant == "nccl_1_pack") return all_reduce("nccl", 1);
  if (variant == "nccl_0_packs") return all_reduce("nccl", 0);
  if (variant == "nccl_default") return std::make_unique<NcclAllReduce>(1, cluster);
  if (variant == "hierarchical_copy_8_packs") return std::make_unique<HierarchicalCopyAllReduce>(8, cluster);
  if (variant == "hierarchical_copy_small") return all_reduce("hierarchical_copy", 0, 100);
  if (variant == "ring") return all_reduce("xring", 1);
  throw std::invalid_argument(variant);
}

Tensor add_all(std::span<const Tensor> components) {
  return with_type(components.front().dtype(), [&](auto zero) { return sum_of<decltype(zero)>(components); });
}

}  // namespace onesum::testing
