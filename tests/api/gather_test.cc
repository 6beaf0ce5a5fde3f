// docs/semantics.md, 5.5 and 5.6. gather and broadcast: what lands where.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::bytes_of;
using testing::contents;
using testing::cpus;

// Element by element: the concatenation of all replicas along an axis.
std::vector<std::byte> concatenated(const PerReplica& value, std::size_t axis) {
  const Shape& first = value.tensor(0).shape();
  std::size_t outer = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= static_cast<std::size_t>(first[a]);
  std::vector<std::byte> all;
  for (std::size_t row = 0; row < outer; ++row) {
    for (std::size_t r = 0; r < value.size(); ++r) {
      const std::vector<std::byte> bytes = bytes_of(value.tensor(r));
      const std::size_t each = bytes.size() / outer;
      all.insert(all.end(), bytes.begin() + static_cast<std::ptrdiff_t>(row * each),
                 bytes.begin() + static_cast<std::ptrdiff_t>((row + 1) * each));
    }
  }
  return all;
}

void expect_gathers(CrossDeviceOps& ops, DType dtype, const std::vector<Shape>& shapes, std::size_t axis) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < shapes.size(); ++r) {
    tensors.push_back(
        testing::random_tensor(dtype, shapes[r], cpus(r + 1).back(), r + 7, testing::Fill::kWild));
  }
  const PerReplica value(std::move(tensors));
  const std::vector<std::byte> expected = concatenated(value, axis);
  const auto rank = static_cast<int>(shapes.front().rank());
  for (const int spelt : {static_cast<int>(axis), static_cast<int>(axis) - rank}) {
    const Mirrored result = ops.gather(value, value, spelt);
    ASSERT_EQ(result.size(), value.size());
    std::vector<std::int64_t> extents(shapes.front().extents().begin(), shapes.front().extents().end());
    extents[axis] = 0;
    for (const Shape& shape : shapes) extents[axis] += shape[axis];
    for (std::size_t d = 0; d < result.size(); ++d) {
      EXPECT_EQ(result.tensor(d).shape(), Shape(std::span<const std::int64_t>(extents)));
      EXPECT_EQ(result.tensor(d).dtype(), dtype);
      ASSERT_EQ(bytes_of(result.tensor(d)), expected)
          << to_string(dtype) << " axis " << axis << " result " << d;
    }
  }
}

// 5.6
TEST(Gather, CopiesOfOneValueOnEveryAxis) {
  ReductionToOneDevice ops;
  for (const std::size_t n : {1U, 2U, 4U}) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      expect_gathers(ops, DType::kFloat32, std::vector<Shape>(n, Shape{1, 2, 2}), axis);
    }
  }
}

TEST(Gather, KnownNumbers) {
  ReductionToOneDevice ops;
  const PerReplica value(std::vector<Tensor>{Tensor::from<float>({1, 2, 1, 2}, {1, 2, 2}, "CPU:0"),
                                             Tensor::from<float>({3, 4, 5, 6}, {1, 2, 2}, "CPU:1")});
  EXPECT_EQ(contents<float>(ops.gather(value, "CPU:0", 0)), (std::vector<float>{1, 2, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(contents<float>(ops.gather(value, "CPU:0", 1)), (std::vector<float>{1, 2, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(contents<float>(ops.gather(value, "CPU:0", 2)), (std::vector<float>{1, 2, 3, 4, 1, 2, 5, 6}));
}

TEST(Gather, ExtentsMayDifferAlongTheAxisOnly) {
  ReductionToOneDevice ops;
  expect_gathers(ops, DType::kInt16, {{3, 4}, {0, 4}, {5, 4}}, 0);
  expect_gathers(ops, DType::kFloat64, {{3, 4}, {3, 0}, {3, 7}, {3, 1}}, 1);
  expect_gathers(ops, DType::kComplex128, {{2, 1, 3}, {2, 5, 3}}, 1);
  expect_gathers(ops, DType::kUInt8, {{7}, {1}, {0}, {13}}, 0);
}

TEST(Gather, ShapesWithoutElements) {
  ReductionToOneDevice ops;
  expect_gathers(ops, DType::kFloat32, {{0}, {0}}, 0);
  expect_gathers(ops, DType::kFloat32, {{0, 3}, {0, 4}}, 1);
  expect_gathers(ops, DType::kFloat32, {{3, 2, 0}, {3, 9, 0}}, 1);
}

TEST(Gather, EveryType) {
  ReductionToOneDevice ops;
  for (const DType dtype : testing::kSummable) expect_gathers(ops, dtype, {{2, 3}, {2, 5}, {2, 1}}, 1);
  expect_gathers(ops, DType::kBool, {{2, 3}, {2, 5}}, 1);
}

TEST(Gather, ManyMegabytes) {
  ReductionToOneDevice ops;
  expect_gathers(ops, DType::kFloat32, {{1000, 331}, {1500, 331}}, 0);
  expect_gathers(ops, DType::kFloat32, {{600, 331}, {600, 701}, {600, 3}}, 1);
  expect_gathers(ops, DType::kUInt8, {{9000, 3}, {9000, 5}}, 1);
  expect_gathers(ops, DType::kFloat64, {{3, 2, 70001}, {3, 2, 1}}, 2);
}

TEST(Gather, OfOneReplicaIsACopy) {
  ReductionToOneDevice ops;
  const Tensor tensor = testing::vector_of<float>({1, 2, 3}, "CPU:1");
  const Mirrored result = ops.gather(PerReplica(tensor), tensor, 0);
  EXPECT_EQ(contents<float>(result), (std::vector<float>{1, 2, 3}));
  EXPECT_NE(result.tensor().memory(), tensor.memory());
}

// 5.5
TEST(Broadcast, EveryTypeBitByBit) {
  ReductionToOneDevice ops;
  std::vector<DType> dtypes(std::begin(testing::kSummable), std::end(testing::kSummable));
  dtypes.push_back(DType::kBool);
  for (const DType dtype : dtypes) {
    for (const std::int64_t elements : {0, 1, 17, 5000}) {
      const Tensor value = testing::random_tensor(dtype, Shape{elements}, "CPU:3", 5, testing::Fill::kWild);
      const Mirrored result = ops.broadcast(value, testing::scalars<float>({0, 0, 0, 0}));
      ASSERT_EQ(result.size(), 4U);
      for (std::size_t d = 0; d < 4; ++d) {
        EXPECT_EQ(bytes_of(result.tensor(d)), bytes_of(value)) << to_string(dtype);
        EXPECT_EQ(result.tensor(d).dtype(), dtype);
        EXPECT_TRUE(elements == 0 || result.tensor(d).memory() != value.memory());
      }
    }
  }
}

// 5.5
TEST(Broadcast, SlicesWithAllTheirParts) {
  ReductionToOneDevice ops;
  const IndexedSlices value = testing::slices({{1, 2}, {3, 4}}, {7, 7}, Shape{9, 2}, "CPU:1");
  const Mirrored result = ops.broadcast(value, testing::scalars<float>({0, 0}));
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(result.slices(d).values), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(contents<std::int64_t>(result.slices(d).indices), (std::vector<std::int64_t>{7, 7}));
    EXPECT_EQ(result.slices(d).dense_shape, (Shape{9, 2}));
  }
}

// 6.1
TEST(Broadcast, IgnoresTheAccumulationFunction) {
  ReductionToOneDevice ops("CPU:2",
                           [](std::span<const Tensor>) -> Tensor { throw std::runtime_error("called"); });
  EXPECT_EQ(contents<float>(ops.broadcast(testing::scalar(4.0F, "CPU:0"), "CPU:1")), std::vector<float>{4});
  EXPECT_EQ(contents<float>(ops.gather(testing::vectors<float>({{1}, {2}}), "CPU:1", 0)),
            (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace onesum
