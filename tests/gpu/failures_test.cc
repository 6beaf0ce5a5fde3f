// What goes wrong on a GPU ends the call with a clear error, and the next call works.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/gpus.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

struct Injected {
  const char* kind;
  const char* algorithm;
  ErrorCode code;
  const char* text;
};

class Failing : public EmulatedGpuTest, public ::testing::WithParamInterface<Injected> {};

std::unique_ptr<CrossDeviceOps> ops_of(const std::string& algorithm) {
  if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
  return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
}

// The failure strikes at every place where it can: the nth call of its kind, until a call has fewer.
TEST_P(Failing, EndsTheCallAndNothingElse) {
  const Injected& injected = GetParam();
  const bool is_nccl = std::string(injected.algorithm) == "nccl";  // which adds in an order of its own
  const PerReplica here = random_value(DType::kFloat32, {3000}, cpus(4), 1);
  const PerReplica value = moved(here, gpus(4));
  const Mirrored expected = ops_of("one_device")->reduce(ReduceOp::kSum, here, here);
  CommunicationOptions options;
  options.timeout = std::chrono::milliseconds(300);  // of what hangs
  int failures = 0;
  for (std::size_t nth = 0;; ++nth) {
    ASSERT_LT(nth, 200U);
    const std::unique_ptr<CrossDeviceOps> ops = ops_of(injected.algorithm);
    emulator().fail(injected.kind, nth, 0);
    bool has_failed = false;
    try {
      const Mirrored found = ops->reduce(ReduceOp::kSum, value, value, options);
      emulator().reset();
      if (!is_nccl) {
        EXPECT_TRUE(same_on(found, expected));
      }
    } catch (const Error& error) {
      has_failed = true;
      ++failures;
      EXPECT_EQ(error.code(), injected.code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(injected.text));
    }
    ASSERT_EQ(emulator().violations(), 0U) << emulator().last_violation();
    emulator().reset();
    if (!has_failed) break;
    // The same object again, and a new one.
    const Mirrored again = ops->reduce(ReduceOp::kSum, value, value);
    const Mirrored anew = ops_of(injected.algorithm)->reduce(ReduceOp::kSum, value, value);
    EXPECT_TRUE(same_on(again, anew));
    if (!is_nccl) {
      EXPECT_TRUE(same_on(again, expected));
    }
  }
  EXPECT_GT(failures, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Failing,
    ::testing::Values(
        Injected{"event_create", "one_device", ErrorCode::kResourceExhausted, "making an event"},
        Injected{"event_record", "hierarchical_copy", ErrorCode::kInternal, "recording an event"},
        Injected{"launch", "one_device", ErrorCode::kInternal, "GPU:"},
        Injected{"launch", "hierarchical_copy", ErrorCode::kInternal, "GPU:"},
        Injected{"copy", "pscpu", ErrorCode::kInternal, "GPU:"},
        Injected{"comm_init", "nccl", ErrorCode::kUnavailable, "NCCL"},
        Injected{"collective_async_error", "nccl", ErrorCode::kUnavailable, "NCCL"},
        Injected{"collective_hang", "nccl", ErrorCode::kDeadlineExceeded, "timeout"}),
    [](const auto& its) { return std::string(its.param.kind) + "_" + its.param.algorithm; });

// Memory that waits for reuse is given back before a GPU is said to have none left.
class OutOfMemory : public EmulatedGpuTest {};

TEST_F(OutOfMemory, IsAnErrorThatSaysHowMuch) {
  const auto take = [] { return Tensor::empty(DType::kFloat32, {std::int64_t{1} << 29}, "GPU:1"); };
  expect_error(take, ErrorCode::kResourceExhausted, {"GPU:1", "2 GiB"});
  emulator().fail("malloc", 0, 0);  // the second attempt succeeds
  EXPECT_EQ(Tensor::empty(DType::kFloat32, {4}, "GPU:1").bytes(), 16U);
}

TEST_F(OutOfMemory, OfResultsEndsTheCall) {
  const PerReplica value(Tensor::empty(DType::kFloat32, {160 << 20}, "GPU:0"));  // of 1 GiB that there are
  ReductionToOneDevice ops;
  expect_error([&] { ops.reduce(ReduceOp::kSum, value, value); }, ErrorCode::kResourceExhausted,
               {"GPU:0", "640 MiB"});
  const PerReplica small = moved(random_value(DType::kFloat32, {3}, cpus(1), 1), gpus(1));
  EXPECT_TRUE(same_on(ops.reduce(ReduceOp::kSum, small, small), small));
}

}  // namespace
}  // namespace onesum::testing
