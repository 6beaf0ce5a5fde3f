// docs/semantics.md, 5.7. batch_reduce_into: results in memory that the caller has.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::blank_results;
using testing::contents;
using testing::expect_invalid;
using testing::scalar;
using testing::scalars;
using testing::vectors;

using Floats = std::vector<float>;
using Values = std::vector<PerReplica>;

PerReplica list(std::vector<Tensor> tensors) { return PerReplica(std::move(tensors)); }

// 5.7
TEST(Into, OwnMemoryOnTheSameDevices) {
  ReductionToOneDevice ops;
  const Values values{vectors<float>({{1, 2}, {3, 4}}), vectors<float>({{5}, {6}})};
  Values results{blank_results(ReduceOp::kSum, values[0], {"CPU:0", "CPU:1"}),
                 blank_results(ReduceOp::kSum, values[1], {"CPU:0", "CPU:1"})};
  void* const memory = results[0].tensor(1).memory();
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(results[0].tensor(1).memory(), memory);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(results[0].tensor(d)), (Floats{4, 6}));
    EXPECT_EQ(contents<float>(results[1].tensor(d)), Floats{11});
    EXPECT_EQ(contents<float>(values[0].tensor(d)), d == 0 ? (Floats{1, 2}) : (Floats{3, 4}));
  }
}

TEST(Into, OtherDevicesAndNumbersOfThem) {
  ReductionToOneDevice ops;
  const Values values{vectors<float>({{1, 2}, {3, 4}, {5, 6}})};
  const std::vector<std::string> lists[] = {{"CPU:2"}, {"CPU:5"}, {"CPU:1", "CPU:7", "CPU:0", "CPU:9"}};
  for (const std::vector<std::string>& devices : lists) {
    Values results{blank_results(ReduceOp::kMean, values[0], devices)};
    ops.batch_reduce_into(ReduceOp::kMean, values, results);
    for (std::size_t d = 0; d < devices.size(); ++d)
      EXPECT_EQ(contents<float>(results[0].tensor(d)), (Floats{3, 4}));
  }
}

TEST(Into, InPlaceInAnyOrderOfResults) {
  ReductionToOneDevice ops;
  const std::vector<std::vector<std::size_t>> orders{{0, 1, 2}, {2, 0, 1}, {1, 0, 2}, {2}, {1, 0}};
  for (const std::vector<std::size_t>& order : orders) {
    for (int again = 0; again < 2; ++again) {
      const Values values{vectors<float>({{1, 10}, {2, 20}, {4, 40}})};
      std::vector<Tensor> tensors;
      std::vector<Floats> expected{{1, 10}, {2, 20}, {4, 40}};
      for (const std::size_t r : order) {
        tensors.push_back(values[0].tensor(r));
        expected[r] = {7, 70};
      }
      Values results{list(tensors)};
      ops.batch_reduce_into(ReduceOp::kSum, values, results);
      for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(contents<float>(values[0].tensor(r)), expected[r]) << r;
    }
  }
}

TEST(Into, PartlyInPlacePartlyElsewhere) {
  ReductionToOneDevice ops;
  const Values values{vectors<float>({{1}, {2}, {4}})};
  Values results{list(
      {scalar(-1.0F, "CPU:8").reshaped({1}), values[0].tensor(1), testing::vector_of<float>({-1}, "CPU:0")})};
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  for (std::size_t d = 0; d < 3; ++d) EXPECT_EQ(contents<float>(results[0].tensor(d)), Floats{7});
  EXPECT_EQ(contents<float>(values[0].tensor(0)), Floats{1});
  EXPECT_EQ(contents<float>(values[0].tensor(2)), Floats{4});
}

TEST(Into, InPlaceWhateverTheDeviceIsCalled) {
  ReductionToOneDevice ops;
  float first = 1;
  float second = 2;
  const auto borrow = [](float& memory, const std::string& device) {
    return Tensor::borrow(&memory, DType::kFloat32, {}, device);
  };
  const Values values{list({borrow(first, "CPU:0"), borrow(second, testing::full_name(1))})};
  Values results{list({borrow(first, testing::full_name(0)), borrow(second, "/cpu:1")})};
  ops.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 3);
  ops.prepare(ReduceOp::kSum, values, results).run();
  EXPECT_EQ(first, 6);
  EXPECT_EQ(second, 6);
}

TEST(Into, OneReplica) {
  ReductionToOneDevice ops;
  const Tensor value = testing::vector_of<float>({1, 2}, "CPU:0");
  Values in_place{PerReplica(value)};
  ops.batch_reduce_into(ReduceOp::kMean, Values{PerReplica(value)}, in_place);
  EXPECT_EQ(contents<float>(value), (Floats{1, 2}));
  Values three{
      list({testing::vector_of<float>({0, 0}, "CPU:4"), value, testing::vector_of<float>({0, 0}, "CPU:3")})};
  ops.batch_reduce_into(ReduceOp::kSum, Values{PerReplica(value)}, three);
  for (std::size_t d = 0; d < 3; ++d) EXPECT_EQ(contents<float>(three[0].tensor(d)), (Floats{1, 2}));
}

TEST(Into, MeansOfIntegersGoToFloats) {
  ReductionToOneDevice ops;
  const Values values{scalars<std::int32_t>({1, 2})};
  Values results{list({scalar(0.0, "CPU:0"), scalar(0.0, "CPU:1")})};
  ops.batch_reduce_into(ReduceOp::kMean, values, results);
  EXPECT_EQ(contents<double>(results[0].tensor(1)), std::vector<double>{1.5});
}

TEST(Into, AddressesMayChangeFromCallToCall) {
  ReductionToOneDevice ops;
  for (int round = 0; round < 20; ++round) {
    const Values values{vectors<float>({{1, 2, 3}, {static_cast<float>(round), 0, 0}})};
    const bool in_place = round % 3 == 0;
    Values results{in_place ? values[0] : blank_results(ReduceOp::kSum, values[0], {"CPU:0", "CPU:1"})};
    ops.batch_reduce_into(ReduceOp::kSum, values, results);
    EXPECT_EQ(contents<float>(results[0].tensor(0)), (Floats{1 + static_cast<float>(round), 2, 3})) << round;
    EXPECT_EQ(contents<float>(results[0].tensor(1)), (Floats{1 + static_cast<float>(round), 2, 3})) << round;
  }
}

TEST(Into, SlicesOfTheRightLength) {
  ReductionToOneDevice ops;
  const Values values{PerReplica({testing::slices({{1}}, {4}, Shape{9, 1}, "CPU:0"),
                                  testing::slices({{2}, {3}}, {5, 6}, Shape{9, 1}, "CPU:1")})};
  const auto room = [](std::size_t rows, const char* device) {
    return testing::slices(std::vector<Floats>(rows, Floats{0}), std::vector<std::int64_t>(rows, -1), {},
                           device);
  };
  Values results{PerReplica({room(3, "CPU:0"), room(3, "CPU:5")})};
  ops.batch_reduce_into(ReduceOp::kMean, values, results);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(results[0].slices(d).values), (Floats{.5F, 1, 1.5F}));
    EXPECT_EQ(contents<std::int64_t>(results[0].slices(d).indices), (std::vector<std::int64_t>{4, 5, 6}));
  }
  Values too_short{PerReplica({room(2, "CPU:0"), room(3, "CPU:5")})};
  expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, too_short); },
                 {"pair 0", "result on", "CPU:0", "(values)", "[2,1]", "[3,1]"});
  Values dense{blank_results(ReduceOp::kSum, vectors<float>({{1}}), {"CPU:0"})};
  expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, dense); },
                 {"pair 0", "dense", "sparse"});
}

TEST(Into, SlicesOfOneReplicaInPlace) {
  ReductionToOneDevice ops;
  const IndexedSlices one = testing::slices({{1}, {2}}, {4, 5}, Shape{9, 1}, "CPU:0");
  Values results{PerReplica(one)};
  ops.batch_reduce_into(ReduceOp::kMean, Values{PerReplica(one)}, results);
  EXPECT_EQ(contents<float>(one.values), (Floats{1, 2}));
  EXPECT_EQ(contents<std::int64_t>(one.indices), (std::vector<std::int64_t>{4, 5}));
}

TEST(Into, MixedComponentsGiveADenseResult) {
  ReductionToOneDevice ops;
  const Values values{PerReplica({Value(testing::vector_of<float>({1, 2, 3}, "CPU:0").reshaped({3, 1})),
                                  Value(testing::slices({{10}, {20}}, {2, 2}, Shape{3, 1}, "CPU:1"))})};
  Values elsewhere{list({Tensor::from<float>({0, 0, 0}, {3, 1}, "CPU:1")})};
  ops.batch_reduce_into(ReduceOp::kSum, values, elsewhere);
  EXPECT_EQ(contents<float>(elsewhere[0].tensor()), (Floats{1, 2, 33}));
  Values in_place{list({values[0].tensor(0), Tensor::from<float>({0, 0, 0}, {3, 1}, "CPU:1")})};
  ops.batch_reduce_into(ReduceOp::kSum, values, in_place);
  EXPECT_EQ(contents<float>(values[0].tensor(0)), (Floats{1, 2, 33}));
  EXPECT_EQ(contents<float>(in_place[0].tensor(1)), (Floats{1, 2, 33}));
  EXPECT_EQ(contents<float>(values[0].slices(1).values), (Floats{10, 20}));
}

// What is refused changes nothing.
class IntoRefused : public ::testing::Test {
 protected:
  void refuse(ReduceOp op, const PerReplica& result, std::initializer_list<std::string_view> parts,
              std::source_location where = std::source_location::current()) {
    Values results{good_result_, result};
    expect_invalid([&] { ops_.batch_reduce_into(op, values_, results); }, parts, where);
    expect_invalid([&] { ops_.prepare(op, values_, results); }, parts, where);
    EXPECT_EQ(contents<float>(good_result_.tensor(0)), (Floats{-1, -2}));
    EXPECT_EQ(contents<float>(values_[0].tensor(1)), (Floats{3, 4}));
  }

  ReductionToOneDevice ops_;
  Values values_{vectors<float>({{1, 2}, {3, 4}}), vectors<std::int32_t>({{5, 6}, {7, 8}})};
  PerReplica good_result_ = vectors<float>({{-1, -2}, {-1, -2}});
};

// 8.14
TEST_F(IntoRefused, WrongType) {
  refuse(ReduceOp::kSum, vectors<float>({{0, 0}, {0, 0}}),
         {"pair 1", "result on", "CPU:0", "float32", "int32"});
  refuse(ReduceOp::kMean, vectors<float>({{0, 0}, {0, 0}}),
         {"pair 1", "CPU:0", "float32", "float64", "mean of int32"});
  refuse(ReduceOp::kMean, values_[1], {"pair 1", "CPU:0", "int32", "float64", "mean of int32"});
}

// 8.14
TEST_F(IntoRefused, WrongShape) {
  refuse(ReduceOp::kSum, vectors<std::int32_t>({{0, 0}, {0}}), {"pair 1", "CPU:1", "[1]", "[2]"});
  refuse(ReduceOp::kSum, vectors<std::int32_t>({{0, 0, 0}}), {"pair 1", "CPU:0", "[3]", "[2]"});
  refuse(ReduceOp::kSum, list({Tensor::from<std::int32_t>({0, 0}, {2, 1}, "CPU:0")}),
         {"pair 1", "[2,1]", "[2]"});
}

// 8.5, 8.6
TEST_F(IntoRefused, WrongDevices) {
  refuse(ReduceOp::kSum,
         list({testing::vector_of<std::int32_t>({0, 0}, "CPU:1"),
               testing::vector_of<std::int32_t>({0, 0}, "/cpu:1")}),
         {"pair 1", "destination", "CPU:1", "twice"});
  refuse(ReduceOp::kSum, list({testing::vector_of<std::int32_t>({0, 0}, "/job:worker/cpu:1")}),
         {"pair 1", "/job:worker"});
}

// 8.14
TEST_F(IntoRefused, WrongNumberOfResults) {
  Values one{good_result_};
  expect_invalid([&] { ops_.batch_reduce_into(ReduceOp::kSum, values_, one); }, {"2 values", "1 results"});
  expect_invalid([&] { ops_.prepare(ReduceOp::kSum, values_, one); }, {"2 values", "1 results"});
  expect_invalid([&] { ops_.batch_reduce_into(static_cast<ReduceOp>(99), values_, one); },
                 {"reduce operation"});
}

}  // namespace
}  // namespace onesum
