// docs/semantics.md, rule 2.1.
#include <vector>

#include <gtest/gtest.h>

#include <onesum/shape.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

TEST(Shape, AScalarHasOneElementAndNoExtents) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0U);
  EXPECT_EQ(scalar.elements(), 1U);
  EXPECT_EQ(scalar.to_string(), "[]");
  EXPECT_EQ(scalar, Shape(std::span<const std::int64_t>()));
}

TEST(Shape, MultipliesItsExtents) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3U);
  EXPECT_EQ(shape.elements(), 24U);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.to_string(), "[2,3,4]");
  EXPECT_NE(shape, (Shape{4, 3, 2}));
  EXPECT_NE(shape, Shape{24});
  const std::vector<std::int64_t> extents = {2, 3, 4};
  EXPECT_EQ(shape, Shape(std::span<const std::int64_t>(extents)));
}

TEST(Shape, AZeroExtentMakesItEmpty) {
  EXPECT_EQ((Shape{0}).elements(), 0U);
  EXPECT_EQ((Shape{5, 0, 7}).elements(), 0U);
  EXPECT_EQ((Shape{5, 0, 7}).to_string(), "[5,0,7]");
}

TEST(Shape, RefusesNegativeExtents) {
  expect_invalid([] { Shape shape{2, -3}; }, {"[2,-3]", "extent 1", "negative"});
  expect_invalid([] { Shape shape{-9223372036854775807 - 1}; }, {"negative"});
  expect_invalid([] { Shape shape{0, -1}; }, {"negative"});
}

TEST(Shape, HoldsUpTo2To62Elements) {
  const std::int64_t most = std::int64_t{1} << 62;
  EXPECT_EQ((Shape{most}).elements(), static_cast<std::size_t>(most));
  EXPECT_EQ((Shape{1 << 30, 1 << 30, 4}).elements(), static_cast<std::size_t>(most));
  expect_invalid([=] { Shape shape{most + 1}; }, {"2^62"});
  expect_invalid([=] { Shape shape{most, 2}; }, {"2^62"});
  expect_invalid([=] { Shape shape{9223372036854775807, 9223372036854775807}; }, {"2^62"});
  expect_invalid([=] { Shape shape{1 << 30, 1 << 30, 5}; }, {"2^62"});
  // Also where a zero makes it empty: its strides must be numbers.
  expect_invalid([=] { Shape shape{0, most, 2}; }, {"2^62"});
}

}  // namespace
}  // namespace onesum
