// NCCL's collectives through the public classes. NCCL adds in an order of its own: contents are whole numbers
// whose sums no order can change, in float16 too.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

class Nccl : public GpuTest {};

PerReplica numbers(std::size_t devices, std::int64_t elements, int first) {
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < devices; ++d) {
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((static_cast<int>(i) + first + 3 * static_cast<int>(d)) % 17);
    }
    tensors.push_back(vector_of(values, gpus(d + 1).back()));
  }
  return PerReplica(std::move(tensors));
}

TEST_F(Nccl, SumsAndMeansBatches) {
  for (const std::size_t devices : possible({1, 2, 3, 4, 8})) {
    NcclAllReduce ops;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      std::vector<ValueDestination> pairs;
      for (const int elements : {1, 5, 1000, 40000}) {
        const PerReplica value = numbers(devices, elements, elements);
        pairs.push_back({value, value});
      }
      const std::size_t before = count_all_reduces();
      const std::vector<Mirrored> found = ops.batch_reduce(op, pairs);
      if (devices > 1 && is_emulated()) {
        EXPECT_EQ(count_all_reduces() - before, devices * pairs.size());
      }
      ReductionToOneDevice ours;
      const std::vector<Mirrored> expected = ours.batch_reduce(op, pairs);
      for (std::size_t p = 0; p < pairs.size(); ++p) EXPECT_TRUE(same_on(found[p], expected[p])) << p;
    }
  }
}

TEST_F(Nccl, WorksInPlace) {
  ONESUM_NEEDS_GPUS(4);
  NcclAllReduce ops;
  std::vector<PerReplica> values = {numbers(4, 1000, 1), numbers(4, 70000, 2)};
  std::vector<Mirrored> expected;
  for (const PerReplica& value : values) {
    expected.push_back(ReductionToOneDevice().reduce(ReduceOp::kMean, value, value));
  }
  ops.batch_reduce_into(ReduceOp::kMean, values, values);
  for (std::size_t v = 0; v < values.size(); ++v) EXPECT_TRUE(same_on(values[v], expected[v]));
}

// A plan says of itself that nobody but the library knows the order.
TEST_F(Nccl, SaysWhoseOrderItIs) {
  ONESUM_NEEDS_GPUS(4);
  const PerReplica value = numbers(4, 100, 1);
  const std::string text = NcclAllReduce().explain(ReduceOp::kSum, one_pair(value, value));
  EXPECT_NE(text.find("native"), std::string::npos) << text;
}

// What NCCL would get wrong, or has no type for, is added by our own kernels.
TEST_F(Nccl, LeavesTheRestToOurKernels) {
  ONESUM_NEEDS_GPUS(2);
  NcclAllReduce ops;
  const PerReplica here(std::vector<Tensor>{vector_of<std::int32_t>({2000000000, -5}, "CPU:0"),
                                            vector_of<std::int32_t>({2000000000, -6}, "CPU:1")});
  const PerReplica there = moved(here, gpus(2));
  const Mirrored mean = ops.reduce(ReduceOp::kMean, there, there);
  EXPECT_TRUE(same_on(mean, ReductionToOneDevice().reduce(ReduceOp::kMean, here, here)));
  EXPECT_EQ(count_all_reduces(), 0U);
}

TEST_F(Nccl, LevelsInsideWorkersThatShareAProcess) {
  ONESUM_NEEDS_GPUS(2);
  const std::vector<std::string> workers = {"/job:worker/task:0", "/job:worker/task:1"};
  for (const char* algorithm :
       {"nccl", "nccl/xring", "nccl/rechd", "nccl/pscpu", "psgpu", "xring", "pscpu"}) {
    MultiWorkerAllReduce ops(workers, 2, {{algorithm, 1, -1}}, 0, 0, 10,
                             Cluster::embedded(workers, 2, "GPU"));
    std::vector<Tensor> tensors;
    for (const std::string& worker : workers) {
      for (const char* gpu : {"/GPU:0", "/GPU:1"}) {
        tensors.push_back(vector_of(std::vector<float>(3000, static_cast<float>(tensors.size() + 1)),
                                    Device(worker + gpu)));
      }
    }
    const PerReplica value(std::move(tensors));
    const Mirrored found = ops.reduce(ReduceOp::kSum, value, value);
    for (const Value& component : found.values()) {
      EXPECT_EQ(contents<float>(std::get<Tensor>(component).copied_to("CPU:0")),
                std::vector<float>(3000, 10.F))
          << algorithm;
    }
  }
}

}  // namespace
}  // namespace onesum::testing
