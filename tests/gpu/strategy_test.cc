// MirroredStrategy over GPUs, and over CPUs and GPUs together: variables, runs, and what replicas do
// together.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "conformance/classes.h"
#include "gpu/gpus.h"
#include "support/tensors.h"
#include "support/waiting.h"

namespace onesum::testing {
namespace {

struct Case {
  const char* name;
  const char* variant;  // of make_ops
  std::vector<std::string> devices;
};

class GpuStrategy : public GpuTest, public ::testing::WithParamInterface<Case> {
 protected:
  std::unique_ptr<MirroredStrategy> strategy() const {
    return std::make_unique<MirroredStrategy>(GetParam().devices, make_ops(GetParam().variant, "GPU:7"));
  }
  float replicas() const { return static_cast<float>(GetParam().devices.size()); }
  float sum_of_ids() const { return replicas() * (replicas() - 1) / 2; }

 private:
  HangGuard guard_;
};

Tensor id_of(const ReplicaContext& replica) {
  const auto id = static_cast<float>(replica.replica_id());
  return vector_of<float>({id, 1}, replica.device());
}

TEST_P(GpuStrategy, RunsReplicasThatReduceTogether) {
  ONESUM_NEEDS_GPUS(8);
  const std::unique_ptr<MirroredStrategy> its = strategy();
  const PerReplica sums = its->run([&](ReplicaContext& replica) {
    const Tensor mean = replica.all_reduce(ReduceOp::kMean, id_of(replica));
    EXPECT_EQ(contents<float>(mean), (std::vector<float>{sum_of_ids() / replicas(), 1}));
    EXPECT_EQ(mean.device(), replica.device());
    const Tensor integer = scalar(std::int32_t{replica.replica_id()}, replica.device());
    const std::vector<Tensor> both = replica.all_reduce(ReduceOp::kSum, {id_of(replica), integer});
    EXPECT_EQ(contents<std::int32_t>(both[1]),
              std::vector<std::int32_t>{static_cast<std::int32_t>(sum_of_ids())});
    return both[0];
  });
  EXPECT_EQ(devices_of(sums), std::vector<Device>(its->devices().begin(), its->devices().end()));
  for (std::size_t d = 0; d < sums.size(); ++d)
    EXPECT_EQ(contents<float>(sums.tensor(d)), (std::vector<float>{sum_of_ids(), replicas()}));
  EXPECT_EQ(contents<float>(its->reduce(ReduceOp::kMean, sums)),
            (std::vector<float>{sum_of_ids(), replicas()}));
}

TEST_P(GpuStrategy, SlicesMayDifferInRows) {
  ONESUM_NEEDS_GPUS(8);
  const std::unique_ptr<MirroredStrategy> its = strategy();
  its->run([&](ReplicaContext& replica) {
    const std::vector<std::vector<float>> rows(static_cast<std::size_t>(replica.replica_id()), {1, 2});
    const std::vector<std::int64_t> indices(rows.size(), replica.replica_id());
    IndexedSlices own = slices(rows, indices, Shape{9, 2}, replica.device());
    if (rows.empty()) own.values = own.values.reshaped({0, 2});
    const IndexedSlices all = replica.all_reduce(ReduceOp::kSum, own);
    EXPECT_EQ(all.values.shape(), (Shape{static_cast<std::int64_t>(sum_of_ids()), 2}));
    EXPECT_EQ(all.indices.device().canonical(), replica.device());
  });
}

// A step of training: gradients are merged, and the mirrored variable is updated everywhere.
TEST_P(GpuStrategy, UpdatesMirroredVariables) {
  ONESUM_NEEDS_GPUS(8);
  const std::unique_ptr<MirroredStrategy> its = strategy();
  const StrategyScope scope = its->scope();
  Variable variable("v", vector_of<float>({10, 20}, "CPU:0"));
  EXPECT_TRUE(variable.is_mirrored());
  its->run([&](ReplicaContext& replica) {
    EXPECT_EQ(variable.value().device().canonical(), replica.device());
    const Value merged = replica.merge_call(
        [&](MirroredStrategy& strategy, std::span<const PerReplica> values) {
          const Mirrored sum = strategy.extended().reduce_to(ReduceOp::kSum, values[0], variable);
          variable.assign(sum);
          return sum;
        },
        {id_of(replica)});
    EXPECT_EQ(contents<float>(std::get<Tensor>(merged)), (std::vector<float>{sum_of_ids(), replicas()}));
    EXPECT_EQ(contents<float>(variable.value()), (std::vector<float>{sum_of_ids(), replicas()}));
    variable.assign(id_of(replica));
  });
  ASSERT_EQ(variable.components().size(), GetParam().devices.size());
  for (std::size_t d = 0; d < variable.components().size(); ++d)
    EXPECT_EQ(contents<float>(variable.components()[d]), (std::vector<float>{static_cast<float>(d), 1}));
}

TEST_P(GpuStrategy, BroadcastsAndReducesInBatches) {
  ONESUM_NEEDS_GPUS(8);
  const std::unique_ptr<MirroredStrategy> its = strategy();
  const PerReplica ids = its->run([](ReplicaContext& replica) { return id_of(replica); });
  const Mirrored copies = its->extended().broadcast_to(vector_of<float>({5, 6}, "GPU:6"), ids);
  const std::vector<ValueDestination> pairs{{copies, copies}, {ids, "CPU:0"}, {ids, ids}};
  const std::vector<Mirrored> sums = its->extended().batch_reduce_to(ReduceOp::kSum, pairs);
  EXPECT_EQ(contents<float>(sums[0].tensor(0)), (std::vector<float>{5 * replicas(), 6 * replicas()}));
  EXPECT_EQ(contents<float>(sums[1].tensor()), (std::vector<float>{sum_of_ids(), replicas()}));
  EXPECT_EQ(contents<float>(sums[2].tensor(ids.size() - 1)), (std::vector<float>{sum_of_ids(), replicas()}));
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuStrategy,
    ::testing::Values(Case{"nccl_1", "nccl_default", gpus(1)}, Case{"nccl_2", "nccl_default", gpus(2)},
                      Case{"nccl_4_permuted", "nccl_default", {"GPU:3", "GPU:1", "GPU:0", "GPU:2"}},
                      Case{"nccl_mixed", "nccl_default", {"GPU:0", "CPU:0"}},
                      Case{"plain_3", "plain", gpus(3)},
                      Case{"plain_mixed", "plain", {"CPU:0", "GPU:1", "GPU:0"}},
                      Case{"hierarchical_8", "hierarchical_copy_8_packs", gpus(8)}),
    [](const auto& its) { return std::string(its.param.name); });

}  // namespace
}  // namespace onesum::testing
