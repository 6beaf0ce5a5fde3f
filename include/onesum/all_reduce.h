// The classes that all-reduce: a value whose devices are those of its destination, in any order, is reduced
// by an algorithm of the class; any other is reduced as by ReductionToOneDevice. Sparse values are
// concatenated. They differ in the algorithms and in packing; results and errors are those of
// CrossDeviceOps. Algorithms, packs and specs: docs/semantics.md, section 6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/cross_device_ops.h>
#include <onesum/export.h>

namespace onesum {

// One algorithm for all tensors.
class ONESUM_API AllReduceCrossDeviceOps : public CrossDeviceOps {
 public:
  // `all_reduce_alg`: a name such as "nccl", "hierarchical_copy", "xring", "nccl/rechd" or "auto".
  // `num_packs`: the dense tensors of a batch are cut into so many packs; 0: none of this. Then, tensors of
  // up to `agg_small_grads_max_bytes` are grouped, at most `agg_small_grads_max_group` to a pack; a number
  // that is not positive turns this off.
  explicit AllReduceCrossDeviceOps(const std::string& all_reduce_alg = "nccl", int num_packs = 1,
                                   std::int64_t agg_small_grads_max_bytes = 0,
                                   int agg_small_grads_max_group = 10,
                                   const std::optional<Cluster>& cluster = {});

 protected:
  AllReduceCrossDeviceOps(const planner::Policy& policy, const std::optional<Cluster>& cluster);
};

// NCCL where it serves the devices. Where it does not (CPUs, several types), our own reduce takes its place,
// and the first reduce or batch_reduce says so in the log.
class ONESUM_API NcclAllReduce : public AllReduceCrossDeviceOps {
 public:
  explicit NcclAllReduce(int num_packs = 1, const std::optional<Cluster>& cluster = {});
};

// Sums in two halves of the devices, then across; packs take turns in which devices they sum on.
class ONESUM_API HierarchicalCopyAllReduce : public AllReduceCrossDeviceOps {
 public:
  explicit HierarchicalCopyAllReduce(int num_packs = 1, const std::optional<Cluster>& cluster = {});
};

// Algorithms by the size of tensors, over several workers. What is all-reduced has a replica on each worker.
class ONESUM_API MultiWorkerAllReduce : public AllReduceCrossDeviceOps {
 public:
  // `worker_devices`: "/job:worker/task:0", … all different, in rank order.
  // `num_gpus_per_worker`: devices of each worker, of the type that values are on; 0: one CPU.
  // `cluster`: its workers must be just these. Absent: the environment's (Cluster::from_environment), or,
  // where that has only this process, they are embedded in it.
  MultiWorkerAllReduce(const std::vector<std::string>& worker_devices, int num_gpus_per_worker,
                       const AllReduceSpecs& all_reduce_spec = {{"pscpu/pscpu", 2, -1}}, int num_packs = 0,
                       std::int64_t agg_small_grads_max_bytes = 0, int agg_small_grads_max_group = 10,
                       const std::optional<Cluster>& cluster = {});
};

}  // namespace onesum
