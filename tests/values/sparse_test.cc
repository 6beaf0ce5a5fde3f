// docs/semantics.md, section 4.
#include "api/sparse.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum::api {
namespace {

using testing::expect_error;
using testing::expect_invalid;

constexpr const char* kName = "pair 3: replica on CPU:1";

template <class T>
IndexedSlices rows(std::initializer_list<T> values, std::int64_t width,
                   std::initializer_list<std::int64_t> indices, std::optional<Shape> dense_shape = {}) {
  const auto count = static_cast<std::int64_t>(indices.size());
  return {Tensor::from<T>(values, {count, width}, "CPU:1"),
          Tensor::from<std::int64_t>(indices, {count}, "CPU:1"), std::move(dense_shape)};
}

template <class T>
std::vector<T> contents(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

// 4.1
TEST(CheckSlices, TakesWellFormedOnes) {
  check_slices(rows<float>({1, 2, 3, 4}, 2, {1, 3}), kName);
  check_slices(rows<float>({1, 2, 3, 4}, 2, {1, 3}, Shape{5, 2}), kName);
  check_slices(rows<float>({}, 2, {}, Shape{5, 2}), kName);
  check_slices(
      {Tensor::from<float>({1, 2}, {2}, "CPU:0"), Tensor::from<std::int32_t>({0, 0}, {2}, "CPU:0"), Shape{7}},
      kName);
}

TEST(CheckSlices, DevicesAreComparedWhenComplete) {
  IndexedSlices slices = rows<float>({1, 2}, 2, {1});
  slices.indices = Tensor::from<std::int64_t>({1}, {1}, "/job:worker/task:2/cpu:1");
  check_slices(slices, kName, "/job:worker/task:2");
  expect_invalid([&] { check_slices(slices, kName); },
                 {kName, "/job:worker", "/job:localhost", "one device"});
}

TEST(CheckSlices, NamesWhatIsWrong) {
  const IndexedSlices good = rows<float>({1, 2, 3, 4}, 2, {1, 3});
  const auto refused = [&](Tensor values, Tensor indices, std::optional<Shape> dense_shape,
                           std::initializer_list<std::string_view> parts,
                           std::source_location where = std::source_location::current()) {
    const IndexedSlices slices{std::move(values), std::move(indices), std::move(dense_shape)};
    expect_invalid([&] { check_slices(slices, kName); }, {kName}, where);
    expect_invalid([&] { check_slices(slices, kName); }, parts, where);
  };
  refused(Tensor(), good.indices, {}, {"values", "refer to nothing"});
  refused(good.values, Tensor(), {}, {"indices", "refer to nothing"});
  refused(Tensor::from<float>({1}, {}, "CPU:1"), good.indices, {}, {"scalar"});
  refused(good.values, Tensor::from<float>({1, 3}, {2}, "CPU:1"), {}, {"float32", "int32 or int64"});
  refused(good.values, Tensor::from<std::uint32_t>({1, 3}, {2}, "CPU:1"), {}, {"uint32", "int32 or int64"});
  refused(good.values, Tensor::from<std::int64_t>({1, 3}, {2, 1}, "CPU:1"), {},
          {"[2,1]", "[2,2]", "expected [2]"});
  refused(good.values, Tensor::from<std::int64_t>({1, 3, 4}, {3}, "CPU:1"), {}, {"[3]", "expected [2]"});
  refused(good.values, Tensor::from<std::int64_t>({1, 3}, {2}, "CPU:0"), {},
          {"CPU:1", "CPU:0", "one device"});
  refused(good.values, good.indices, Shape{5}, {"[2,2]", "[5]"});
  refused(good.values, good.indices, Shape{5, 3}, {"[2,2]", "[5,3]"});
  refused(good.values, good.indices, Shape{}, {"[2,2]", "[]"});
}

// 4.6
TEST(Densify, AddsRowsToZeros) {
  const Tensor dense = densify(rows<float>({1, 2, 3, 4, 5, 6}, 2, {1, 1, 3}), {5, 2}, DType::kFloat32);
  EXPECT_EQ(dense.shape(), (Shape{5, 2}));
  EXPECT_EQ(dense.device(), Device("CPU:1"));
  EXPECT_EQ(contents<float>(dense), (std::vector<float>{0, 0, 4, 6, 0, 0, 5, 6, 0, 0}));
}

TEST(Densify, TakesIndicesOf32Bits) {
  const IndexedSlices slices{
      Tensor::from<float>({1, 2, 3}, {3}, "CPU:0"), Tensor::from<std::int32_t>({2, 0, 2}, {3}, "CPU:0"), {}};
  EXPECT_EQ(contents<float>(densify(slices, {3}, DType::kFloat32)), (std::vector<float>{2, 0, 4}));
}

TEST(Densify, NoRowsGiveZerosAndNoSpaceGivesNothing) {
  EXPECT_EQ(contents<float>(densify(rows<float>({}, 2, {}), {2, 2}, DType::kFloat32)),
            (std::vector<float>(4, 0)));
  EXPECT_EQ(densify(rows<float>({}, 0, {0, 1}), {2, 0}, DType::kFloat32).bytes(), 0U);
  EXPECT_EQ(densify(rows<float>({}, 2, {}), {0, 2}, DType::kFloat32).bytes(), 0U);
}

TEST(Densify, RefusesIndicesOutside) {
  const auto refused = [](std::initializer_list<std::int64_t> indices, Shape dense,
                          std::initializer_list<std::string_view> parts) {
    const IndexedSlices slices = rows<float>({1, 2}, 1, indices);
    expect_invalid([&] { densify(slices, dense, DType::kFloat32, kName); }, parts);
  };
  refused({0, 5}, {5, 1}, {kName, "row 1", "index 5", "less than 5"});
  refused({-1, 0}, {5, 1}, {"row 0", "index -1"});
  refused({std::int64_t{1} << 40, 0}, {5, 1}, {"row 0", "1099511627776"});
  refused({0, 0}, {0, 1}, {"row 0", "less than 0"});
  expect_invalid([] { densify(rows<float>({1, 2}, 2, {0}), {5, 3}, DType::kFloat32); }, {"[1,2]", "[5,3]"});
}

// Rows of one index are added in the order of their positions, not in the canonical tree: they are one
// replica.
TEST(Densify, AddsInTheOrderOfPositions) {
  const Tensor dense = densify(rows<float>({1e8F, 1, -1e8F, 1}, 1, {0, 0, 0, 0}), {1, 1}, DType::kFloat32);
  EXPECT_EQ(contents<float>(dense), std::vector<float>{1});
}

// 3.6: what is added in 16 bits would be 2048 for ever.
TEST(Densify, SixteenBitFloatsAreAddedIn32Bits) {
  const Float16 big = Float16::from_float(2048);
  const Float16 one = Float16::from_float(1);
  const IndexedSlices halves = rows<Float16>({big, one, one, one}, 1, {0, 0, 0, 0});
  EXPECT_EQ(contents<float>(densify(halves, {1, 1}, DType::kFloat32)), std::vector<float>{2051});
  const BFloat16 coarse = BFloat16::from_float(256);
  const BFloat16 fine = BFloat16::from_float(1);
  const IndexedSlices brains = rows<BFloat16>({coarse, fine, fine}, 1, {0, 0, 0});
  EXPECT_EQ(contents<float>(densify(brains, {1, 1}, DType::kFloat32)), std::vector<float>{258});
}

// 3.7
TEST(Densify, IntegersWrapInASumAndAreWidenedForAMean) {
  const IndexedSlices small = rows<std::int8_t>({127, 1, -3}, 1, {0, 0, 1});
  EXPECT_EQ(contents<std::int8_t>(densify(small, {2, 1}, DType::kInt8)),
            (std::vector<std::int8_t>{-128, -3}));
  EXPECT_EQ(contents<std::int64_t>(densify(small, {2, 1}, DType::kInt64)),
            (std::vector<std::int64_t>{128, -3}));
  const IndexedSlices unsigneds = rows<std::uint32_t>({4294967295U, 2}, 1, {0, 0});
  EXPECT_EQ(contents<std::uint32_t>(densify(unsigneds, {1, 1}, DType::kUInt32)),
            std::vector<std::uint32_t>{1});
  EXPECT_EQ(contents<std::uint64_t>(densify(unsigneds, {1, 1}, DType::kUInt64)),
            std::vector<std::uint64_t>{4294967297U});
}

TEST(Densify, AMeanNeverWraps) {
  const IndexedSlices wide = rows<std::int64_t>({std::numeric_limits<std::int64_t>::max(), 1}, 1, {0, 0});
  EXPECT_EQ(contents<std::int64_t>(densify(wide, {1, 1}, DType::kInt64, kName, Overflow::kWraps)),
            std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()});
  expect_error([&] { densify(wide, {1, 1}, DType::kInt64, kName, Overflow::kRefused); },
               ErrorCode::kUnimplemented, {kName, "int64", "MEAN"});
  const IndexedSlices fits = rows<std::int64_t>({std::numeric_limits<std::int64_t>::max(), -1}, 1, {0, 0});
  EXPECT_TRUE(densify(fits, {1, 1}, DType::kInt64, kName, Overflow::kRefused));
}

TEST(Densify, EveryTypeThatHasASum) {
  const auto doubled = []<class T>(T value, T twice) {
    EXPECT_EQ(contents<T>(densify(rows<T>({value, value}, 1, {1, 1}), {2, 1}, kDTypeOf<T>)),
              (std::vector<T>{T(), twice}))
        << to_string(kDTypeOf<T>);
  };
  doubled(std::uint8_t{3}, std::uint8_t{6});
  doubled(std::int8_t{-3}, std::int8_t{-6});
  doubled(std::uint16_t{3}, std::uint16_t{6});
  doubled(std::int16_t{-3}, std::int16_t{-6});
  doubled(std::uint32_t{3}, std::uint32_t{6});
  doubled(std::int32_t{-3}, std::int32_t{-6});
  doubled(std::uint64_t{3}, std::uint64_t{6});
  doubled(std::int64_t{-3}, std::int64_t{-6});
  doubled(1.5F, 3.0F);
  doubled(-1.5, -3.0);
  doubled(std::complex<float>(1, -2), std::complex<float>(2, -4));
  doubled(std::complex<double>(1, -2), std::complex<double>(2, -4));
  expect_invalid([] { densify(rows<bool>({true}, 1, {0}), {1, 1}, DType::kBool); }, {"bool has no sum"});
  const IndexedSlices halves = rows<Float16>({Float16{}}, 1, {0});
  expect_error([&] { densify(halves, {1, 1}, DType::kFloat16); }, ErrorCode::kInternal, {"float16"});
}

TEST(Densify, BorrowedMemoryOfAnyAlignment) {
  std::vector<std::byte> memory(64);
  const std::vector<float> values = {1, 2};
  const std::vector<std::int64_t> indices = {1, 1};
  std::memcpy(memory.data() + 1, values.data(), 8);
  std::memcpy(memory.data() + 17, indices.data(), 16);
  const IndexedSlices slices{Tensor::borrow(memory.data() + 1, DType::kFloat32, {2, 1}, "CPU:0"),
                             Tensor::borrow(memory.data() + 17, DType::kInt64, {2}, "CPU:0"),
                             {}};
  EXPECT_EQ(contents<float>(densify(slices, {2, 1}, DType::kFloat32)), (std::vector<float>{0, 3}));
}

// Large enough for several segments: the same bits as one after the other.
TEST(Densify, TheResultDoesNotDependOnThreads) {
  std::mt19937 random(3);
  constexpr std::int64_t kRows = 2000;
  constexpr std::int64_t kWidth = 1000;
  constexpr std::int64_t kUpdates = 3000;
  std::vector<float> values(kUpdates * kWidth);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random() % 2001) - 1000, static_cast<int>(random() % 40));
  std::vector<std::int64_t> indices(kUpdates);
  for (std::int64_t& index : indices) index = static_cast<std::int64_t>(random() % kRows);
  std::vector<float> expected(kRows * kWidth);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      expected[static_cast<std::size_t>(indices[row]) * kWidth + i] += values[row * kWidth + i];
    }
  }
  const IndexedSlices slices{Tensor::from<float>(values, {kUpdates, kWidth}, "CPU:0"),
                             Tensor::from<std::int64_t>(indices, {kUpdates}, "CPU:0"),
                             {}};
  EXPECT_TRUE(contents<float>(densify(slices, {kRows, kWidth}, DType::kFloat32)) == expected);
}

// 3.4, 4.6
TEST(DensifiedDType, IsTheAccumulatorWhereATensorCanHaveIt) {
  EXPECT_EQ(densified_dtype(ReduceOp::kSum, DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(densified_dtype(ReduceOp::kSum, DType::kInt8), DType::kInt8);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kInt8), DType::kInt64);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kUInt32), DType::kUInt64);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kInt64), DType::kInt64);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kUInt64), DType::kUInt64);
  EXPECT_EQ(densified_dtype(ReduceOp::kMean, DType::kComplex128), DType::kComplex128);
}

TEST(Widened, KeepsEveryElement) {
  const Tensor halves =
      Tensor::from<Float16>({Float16::from_float(-0.0F), Float16::from_float(65504)}, {2}, "CPU:1");
  const Tensor floats = widened(halves, DType::kFloat32);
  EXPECT_EQ(floats.device(), Device("CPU:1"));
  EXPECT_TRUE(std::signbit(floats.data<float>()[0]));
  EXPECT_EQ(floats.data<float>()[1], 65504);
  const Tensor integers = widened(Tensor::from<std::int16_t>({-5, 7}, {2, 1}, "CPU:0"), DType::kInt64);
  EXPECT_EQ(contents<std::int64_t>(integers), (std::vector<std::int64_t>{-5, 7}));
  EXPECT_EQ(integers.shape(), (Shape{2, 1}));
  const Tensor same = Tensor::from<float>({1, 2}, {2}, "CPU:0");
  const Tensor copy = widened(same, DType::kFloat32);
  EXPECT_EQ(contents<float>(copy), contents<float>(same));
  EXPECT_NE(copy.memory(), same.memory());
}

}  // namespace
}  // namespace onesum::api
