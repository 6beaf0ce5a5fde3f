#include "plan/simulate.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <span>

#include <gtest/gtest.h>

#include <onesum/dtype.h>
#include <onesum/error.h>

#include "plan/numbers.h"
#include "plan/sample_plans.h"
#include "plan/text.h"

namespace onesum::plan {
namespace {

TEST(Simulate, GivesTheSumsOfTheDefinition) {
  for (const Plan& plan : sample::all()) {
    const Proof proof = verify(plan);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      EXPECT_EQ(numbers::check(plan, numbers::make(plan, proof, seed), seed, 7), "") << to_text(plan);
    }
  }
}

template <class T>
Bytes bytes_of(std::initializer_list<T> values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(std::data(values), values.size()));
  return {bytes.begin(), bytes.end()};
}

template <class R, class T>
std::vector<R> reduce(ReduceOp op, std::initializer_list<std::initializer_list<T>> replicas) {
  const sample::Types types = sample::types_of(op, kDTypeOf<T>);
  const Plan plan = sample::one_device(static_cast<std::int32_t>(replicas.size()), types, false);
  EXPECT_EQ(size_of(types.output), sizeof(R));
  BytesOfPacks inputs(1);
  for (const auto& replica : replicas) inputs[0].push_back(bytes_of(replica));
  const BytesOfPacks results = simulate(plan, {{replicas.begin()->size()}, {}}, inputs);
  std::vector<R> values(results[0][0].size() / sizeof(R));
  std::ranges::copy(results[0][0], std::as_writable_bytes(std::span(values)).begin());
  for (const Bytes& result : results[0]) EXPECT_EQ(result, results[0][0]);
  return values;
}

TEST(Simulate, IntegersWrapInSums) {
  EXPECT_EQ((reduce<std::int8_t, std::int8_t>(ReduceOp::kSum, {{127, -128}, {1, -1}})),
            (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ((reduce<std::uint32_t, std::uint32_t>(ReduceOp::kSum, {{4000000000u}, {4000000000u}})),
            (std::vector<std::uint32_t>{3705032704u}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((reduce<std::int64_t, std::int64_t>(ReduceOp::kSum, {{most}, {1}})),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}));
}

TEST(Simulate, IntegerMeansNeverWrap) {
  EXPECT_EQ((reduce<float, std::int8_t>(ReduceOp::kMean, {{127, -128}, {127, -127}})),
            (std::vector<float>{127, -127.5}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((reduce<double, std::int64_t>(ReduceOp::kMean, {{most, -3}, {most, 4}})),
            (std::vector<double>{9223372036854775808.0, 0.5}));
  const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((reduce<double, std::uint64_t>(ReduceOp::kMean, {{top}, {top}, {top}})),
            (std::vector<double>{18446744073709551616.0}));
}

TEST(Simulate, SmallFloatsAreRoundedOnce) {
  const auto half = [](float x) { return Float16::from_float(x); };
  // 2048 + 1 + 1 is 2050; rounding after each addition would give 2048.
  EXPECT_EQ((reduce<Float16, Float16>(ReduceOp::kSum, {{half(2048)}, {half(1)}, {half(1)}})),
            (std::vector<Float16>{half(2050)}));
  // The sum is beyond float16's largest value, the mean is not.
  EXPECT_EQ((reduce<Float16, Float16>(ReduceOp::kMean, {{half(60000)}, {half(60000)}})),
            (std::vector<Float16>{half(60000)}));
  EXPECT_EQ((reduce<BFloat16, BFloat16>(
                ReduceOp::kSum,
                {{BFloat16::from_float(256)}, {BFloat16::from_float(1)}, {BFloat16::from_float(1)}})),
            (std::vector<BFloat16>{BFloat16::from_float(258)}));
}

TEST(Simulate, FloatsAreAddedInCanonicalOrder) {
  // (1e8 + 1) + (-1e8 + 1): left to right would give 1.
  EXPECT_EQ((reduce<float, float>(ReduceOp::kSum, {{1e8f}, {1}, {-1e8f}, {1}})), (std::vector<float>{0}));
}

TEST(Simulate, ComplexMeansDivideBothParts) {
  using C = std::complex<float>;
  EXPECT_EQ((reduce<C, C>(ReduceOp::kMean, {{C(1, 2)}, {C(2, 3)}})), (std::vector<C>{C(1.5, 2.5)}));
}

TEST(Simulate, EmptyPacksAreFine) {
  EXPECT_EQ((reduce<float, float>(ReduceOp::kMean, {{}, {}})), (std::vector<float>{}));
  const Plan plan = sample::ring(4, {});
  EXPECT_EQ(simulate(plan, {{0}, {}}, {{Bytes(), Bytes(), Bytes(), Bytes()}})[0].size(), 4u);
}

TEST(Simulate, RefusesInputsOfTheWrongSize) {
  const Plan plan = sample::one_device(2, {}, false);
  EXPECT_THROW(simulate(plan, {{2}, {}}, {{Bytes(8), Bytes(4)}}), Error);
  EXPECT_THROW(simulate(plan, {{2}, {}}, {{Bytes(8)}}), Error);
}

}  // namespace
}  // namespace onesum::plan
