// docs/semantics.md, section 3. The order and the rounding of sums of floats, and values that are not
// ordinary numbers.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
T reduced(ReduceOp op, const std::vector<T>& replicas) {
  ReductionToOneDevice ops;
  return ops.reduce(op, testing::scalars(replicas), "CPU:0").tensor().template data<T>()[0];
}

float sum(const std::vector<float>& replicas) { return reduced(ReduceOp::kSum, replicas); }
float mean(const std::vector<float>& replicas) { return reduced(ReduceOp::kMean, replicas); }

// 3.3, 9.3
TEST(Order, IsTheCanonicalTree) {
  EXPECT_EQ(sum({1e8F, 1, -1e8F}), 0);
  EXPECT_EQ(sum({1e8F, 1, -1e8F, 1}), 0);  // (1e8 + 1) + (-1e8 + 1); from left to right it would be 1
  EXPECT_EQ(sum({1e8F, -1e8F, 1, 1}), 2);
  EXPECT_EQ(sum({1, 1e8F, -1e8F, 1}), 0);
  EXPECT_EQ(sum({1, 1, 1e8F, -1e8F}), 2);
  EXPECT_EQ(sum({0, 0, 0, 0, 1e8F, -1e8F}), 0);
  EXPECT_EQ(sum({1e8F, 0, 0, 0, -1e8F, 1}), 0);     // ((0+1)+(2+3))+(4+5)
  EXPECT_EQ(sum({1e8F, 0, 0, 0, -1e8F, 0, 1}), 0);  // ((0+1)+(2+3))+((4+5)+6)
  EXPECT_EQ(sum({0, 0, 0, 0, 1e8F, 1, -1e8F}), 0);
  EXPECT_EQ(sum({1, 0, 0, 0, 1e8F, -1e8F, 1}), 2);
}

// 3.3, 3.10
TEST(Order, IsInEveryElementAndOnEveryDevice) {
  ReductionToOneDevice ops;
  const std::vector<float> numbers{1e8F, 1, -1e8F, 1};
  for (const std::size_t elements : {1U, 3U, 4U, 31U, 1000U, 300001U}) {
    std::vector<std::vector<float>> replicas;
    for (const float number : numbers) replicas.emplace_back(elements, number);
    const PerReplica value = testing::vectors(replicas);
    const Mirrored result = ops.reduce(ReduceOp::kSum, value, value);
    for (std::size_t d = 0; d < 4; ++d)
      EXPECT_EQ(contents<float>(result.tensor(d)), std::vector<float>(elements, 0));
  }
}

// 3.3
TEST(Order, FollowsTheReplicasNotTheDevices) {
  ReductionToOneDevice ops;
  const auto on = [](float number, const char* device) { return testing::scalar(number, device); };
  const PerReplica value(
      std::vector<Tensor>{on(1e8F, "CPU:3"), on(1, "CPU:0"), on(-1e8F, "CPU:2"), on(1, "CPU:1")});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, value, "CPU:0")), std::vector<float>{0});
}

// 3.6, 9.6
TEST(Rounding, OfFloat16HappensOnceFromFloat32) {
  const auto half = [](float number) { return Float16::from_float(number); };
  // 2048 + 1 is no float16: rounding each partial sum would give 2048.
  EXPECT_EQ(reduced<Float16>(ReduceOp::kSum, {half(2048), half(1), half(1)}), half(2050));
  EXPECT_EQ(reduced<Float16>(ReduceOp::kSum, {half(2048), half(1), half(1), half(1)}),
            half(2052));  // 2051: a tie, to even
  EXPECT_EQ(reduced<Float16>(ReduceOp::kSum, {half(65504), half(65504), half(-65504), half(0)}), half(65504));
  EXPECT_EQ(reduced<Float16>(ReduceOp::kMean, {half(1), half(0), half(0)}), half(1.0F / 3));
  // Divided before it is rounded: 2049 / 2 is a float16, 2048 / 2 another.
  EXPECT_EQ(reduced<Float16>(ReduceOp::kMean, {half(2048), half(1)}), half(1024.5F));
}

// 3.6
TEST(Rounding, OfBFloat16HappensOnceFromFloat32) {
  const auto brain = [](float number) { return BFloat16::from_float(number); };
  EXPECT_EQ(reduced<BFloat16>(ReduceOp::kSum, {brain(256), brain(1), brain(1)}), brain(258));
  EXPECT_EQ(reduced<BFloat16>(ReduceOp::kSum, {brain(256), brain(1)}), brain(256));  // 257: a tie, to even
  EXPECT_EQ(reduced<BFloat16>(ReduceOp::kSum, {brain(256), brain(1), brain(1), brain(1)}),
            brain(260));  // 259: the other way
  EXPECT_EQ(reduced<BFloat16>(ReduceOp::kMean, {brain(256), brain(1)}), brain(128.5F));
}

// 3.8
TEST(Specials, NanAndInfinity) {
  EXPECT_TRUE(std::isnan(sum({1, kNan, 2})));
  EXPECT_TRUE(std::isnan(mean({kNan})));
  EXPECT_EQ(sum({1, kInf}), kInf);
  EXPECT_EQ(mean({1, -kInf, 5}), -kInf);
  EXPECT_TRUE(std::isnan(sum({kInf, -kInf})));
  EXPECT_TRUE(std::isnan(sum({kInf, 1, -kInf, kInf})));
}

// 3.8
TEST(Specials, ZerosHaveSigns) {
  EXPECT_TRUE(std::signbit(sum({-0.0F, -0.0F, -0.0F})));
  EXPECT_TRUE(std::signbit(sum({-0.0F})));
  EXPECT_TRUE(std::signbit(mean({-0.0F, -0.0F})));
  EXPECT_FALSE(std::signbit(sum({-0.0F, 0.0F})));
  EXPECT_FALSE(std::signbit(sum({1, -1})));
}

constexpr float kTiny = std::numeric_limits<float>::denorm_min();

// 3.8
TEST(Specials, SubnormalsAreKept) {
  EXPECT_EQ(sum({kTiny, kTiny}), 2 * kTiny);
  EXPECT_EQ(mean({2 * kTiny, 2 * kTiny}), 2 * kTiny);
  EXPECT_EQ(mean({kTiny, 2 * kTiny}), 2 * kTiny);  // 1.5: to even
  EXPECT_EQ(sum({std::numeric_limits<float>::min(), -kTiny}), std::numeric_limits<float>::min() - kTiny);
  const Float16 tiny{1};
  EXPECT_EQ(reduced<Float16>(ReduceOp::kSum, {tiny, tiny, tiny}).bits, 3);
}

#if defined(__SSE2__)
// A caller that flushes subnormals to zero, as many programs do for speed, gets the same bits, and its own
// setting back.
TEST(Specials, TheCallersFlushToZeroDoesNotMatter) {
  ReductionToOneDevice ops;
  for (const std::size_t elements : {1U, 1000U, 2000003U}) {
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kComplex64}) {
      if (elements > 1000 && dtype != DType::kFloat32) continue;
      const PerReplica value = testing::random_value(dtype, Shape{static_cast<std::int64_t>(elements)},
                                                     testing::cpus(3), 9, testing::Fill::kWild);
      const Mirrored before = ops.reduce(ReduceOp::kMean, value, value);
      const unsigned saved = _mm_getcsr();
      _mm_setcsr(saved | 0x8040U | 0x6000U);  // flush to zero, denormals are zero, round toward zero
      const unsigned set = _mm_getcsr();
      const Mirrored during = ops.reduce(ReduceOp::kMean, value, value);
      const unsigned after = _mm_getcsr();
      _mm_setcsr(saved);
      EXPECT_EQ(after & ~0x3fU, set & ~0x3fU);
      EXPECT_TRUE(testing::all_hold(during, testing::bytes_of(before.tensor(0)))) << to_string(dtype);
    }
  }
}
#endif

}  // namespace
}  // namespace onesum
