// docs/semantics.md, 9.2. The core matrix of reductions and broadcasts on CPUs, and where results go.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "conformance/classes.h"
#include "conformance/core_matrix.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::devices_of;
using testing::scalar;

using Parameters = std::tuple<std::string, std::size_t>;

class CoreMatrix : public ::testing::TestWithParam<Parameters> {
 protected:
  std::unique_ptr<CrossDeviceOps> ops_ = testing::make_ops(std::get<0>(GetParam()), "/device:CPU:99");
  const testing::Stage stage_{cpus(std::get<1>(GetParam()))};
};

// 9.2, 5.3
TEST_P(CoreMatrix, Reduce) { testing::check_reduce(*ops_, stage_); }

// 9.2, 5.4
TEST_P(CoreMatrix, BatchReduceToAllPairsOfDestinations) { testing::check_batch_reduce(*ops_, stage_); }

// 3.11
TEST_P(CoreMatrix, OtherOperations) {
  if (std::get<0>(GetParam()) == "accumulation_fn") GTEST_SKIP() << "which has sums and means only";
  testing::check_other_operations(*ops_, stage_);
}

// 5.5
TEST_P(CoreMatrix, Broadcast) { testing::check_broadcast(*ops_, stage_); }

INSTANTIATE_TEST_SUITE_P(All, CoreMatrix,
                         ::testing::Combine(::testing::ValuesIn(testing::all_variants()),
                                            ::testing::Values(1, 2, 3, 4, 7)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param));
                         });

// 5.2
TEST(Destinations, ResultsComeInTheirOrder) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::scalars<float>({1, 2, 3});
  const std::vector<std::string> orders[] = {
      {"CPU:2", "CPU:0", "CPU:1"}, {"CPU:1"}, {"CPU:4", "CPU:0"}, {"CPU:7", "CPU:8", "CPU:9", "CPU:2"}};
  for (const auto& order : orders) {
    const PerReplica model = testing::blank_results(ReduceOp::kSum, value, order);
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, model);
    EXPECT_EQ(devices_of(result), devices_of(model));
    for (std::size_t d = 0; d < result.size(); ++d)
      EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>{6});
  }
}

// 1.7, 5.2
TEST(Destinations, AreNeverWrittenNorAliased) {
  ReductionToOneDevice ops;
  const PerReplica value = testing::scalars<float>({1, 2});
  const PerReplica other = testing::scalars<float>({10, 20});
  const Tensor tensor = scalar(5.0F, "CPU:1");
  const Mirrored a = ops.reduce(ReduceOp::kSum, value, other);
  const Mirrored b = ops.reduce(ReduceOp::kSum, value, tensor);
  const Mirrored c = ops.reduce(ReduceOp::kSum, value, value);
  const Mirrored alone = ops.reduce(ReduceOp::kSum, PerReplica(tensor), tensor);
  EXPECT_EQ(contents<float>(other.tensor(0)), std::vector<float>{10});
  EXPECT_EQ(contents<float>(other.tensor(1)), std::vector<float>{20});
  EXPECT_EQ(contents<float>(tensor), std::vector<float>{5});
  EXPECT_EQ(contents<float>(value.tensor(0)), std::vector<float>{1});
  EXPECT_EQ(contents<float>(value.tensor(1)), std::vector<float>{2});
  EXPECT_EQ(devices_of(b), std::vector<Device>{Device("CPU:1").canonical()});
  for (std::size_t d = 0; d < 2; ++d) EXPECT_NE(c.tensor(d).memory(), value.tensor(d).memory());
  EXPECT_NE(c.tensor(0).memory(), c.tensor(1).memory());
  EXPECT_NE(alone.tensor(0).memory(), tensor.memory());
  EXPECT_EQ(contents<float>(alone), std::vector<float>{5});
}

// 2.5
TEST(Destinations, AMirroredOfOneDeviceReadsAsATensor) {
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kMean, testing::scalars<float>({1, 2}), "CPU:1");
  const Tensor& tensor = result;
  EXPECT_EQ(contents<float>(tensor), std::vector<float>{1.5F});
}

// 1.4
TEST(Devices, MayBeSpeltInAnyWay) {
  ReductionToOneDevice ops("cpu:0");
  const PerReplica value(std::vector<Tensor>{scalar(1.0F, "/cpu:0"), scalar(2.0F, testing::full_name(1)),
                                             scalar(4.0F, "/job:localhost/device:CPU:2")});
  const Mirrored result = ops.reduce(ReduceOp::kSum, value, value);
  EXPECT_EQ(devices_of(result), devices_of(value));
  EXPECT_EQ(contents<float>(result.tensor(2)), std::vector<float>{7});
}

// 5.4, 8.25
TEST(Batches, ThatAreEmptyGiveNothing) {
  ReductionToOneDevice ops;
  EXPECT_TRUE(ops.batch_reduce(ReduceOp::kSum, {}).empty());
  EXPECT_TRUE(ops.batch_reduce_async(ReduceOp::kMean, {}).results().empty());
  ops.batch_reduce_into(ReduceOp::kSum, {}, {});
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, {}, {});
  prepared.run();
  prepared.start().wait();
  EXPECT_EQ(ops.last_call().number, 0U);
}

}  // namespace
}  // namespace onesum
