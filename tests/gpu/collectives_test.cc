// Collectives on GPUs, and on CPUs and GPUs together.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "api/copies.h"
#include "gpu/gpus.h"
#include "support/collective_reference.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduce,        CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

Tensor tensor_on(const std::string& device, DType dtype, const Bytes& bytes) {
  const Shape shape{static_cast<std::int64_t>(bytes.size() / size_of(dtype))};
  const Tensor here = Tensor::empty(dtype, shape, "CPU:0");
  if (!bytes.empty()) std::memcpy(here.memory(), bytes.data(), bytes.size());
  const Tensor there = Tensor::empty(dtype, shape, device);
  if (!bytes.empty()) api::copy(here, there);
  return there;
}

void expect_good(CrossDeviceOps& ops, const CollectiveCase& its, const std::vector<std::string>& devices) {
  const bool has_root = its.kind == CollectiveKind::kBroadcast || its.kind == CollectiveKind::kScatter;
  std::vector<Tensor> replicas;
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!has_root || i == 0) replicas.push_back(tensor_on(devices[i], its.dtype, replica_bytes(its, i)));
    results.push_back(tensor_on(devices[i], its.dtype, Bytes(its.results[i] * size_of(its.dtype))));
  }
  ops.run({its.kind, its.op, 0, {PerReplica(replicas)}, {PerReplica(results)}, its.splits});
  for (std::size_t d = 0; d < results.size(); ++d) {
    EXPECT_EQ(bytes_of(results[d]), expected_result(its, d))
        << to_string(its.kind) << " of " << to_string(its.dtype) << ", result " << d << " on " << devices[d];
  }
}

class CollectivesOnGpus : public GpuTest {};

TEST_F(CollectivesOnGpus, GiveWhatTheyShould) {
  for (const std::size_t count : possible({1, 2, 3, 4})) {
    ReductionToOneDevice ops;
    for (const CollectiveKind kind : kKinds) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt8}) {
        for (const bool uneven : {false, true})
          expect_good(ops, collective_case(kind, dtype, count, 1001, uneven), gpus(count));
      }
    }
  }
}

TEST_F(CollectivesOnGpus, AndCpusTogether) {
  ONESUM_NEEDS_GPUS(2);
  ReductionToOneDevice ops;
  for (const CollectiveKind kind : kKinds) {
    expect_good(ops, collective_case(kind, DType::kFloat32, 4, 5003, true),
                {"GPU:1", "CPU:1", "GPU:0", "CPU:0"});
  }
}

}  // namespace
}  // namespace onesum::testing
