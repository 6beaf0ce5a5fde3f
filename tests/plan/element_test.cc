#include "base/element.h"

#include <gtest/gtest.h>

namespace onesum {
namespace {

std::vector<Element> all() {
  std::vector<Element> elements;
  for (int i = 0; i < kNumElements; ++i) elements.push_back(static_cast<Element>(i));
  return elements;
}

TEST(Element, AgreesWithDType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(size_of(element_of(dtype)), size_of(dtype));
    EXPECT_EQ(to_string(element_of(dtype)), to_string(dtype));
  }
  EXPECT_EQ(size_of(Element::kInt128), 16u);
  EXPECT_EQ(size_of(Element::kUInt128), 16u);
}

TEST(Element, NamesParseBack) {
  for (const Element element : all()) EXPECT_EQ(parse_element(to_string(element)), element);
  EXPECT_EQ(parse_element("f32"), std::nullopt);
  EXPECT_EQ(parse_element(""), std::nullopt);
}

TEST(Element, Accumulators) {
  EXPECT_EQ(accumulator_of(ReduceOp::kSum, Element::kFloat16), Element::kFloat32);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kBFloat16), Element::kFloat32);
  EXPECT_EQ(accumulator_of(ReduceOp::kSum, Element::kInt8), Element::kInt8);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kInt8), Element::kInt64);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kUInt32), Element::kUInt64);
  EXPECT_EQ(accumulator_of(ReduceOp::kSum, Element::kInt64), Element::kInt64);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kInt64), Element::kInt128);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kUInt64), Element::kUInt128);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kComplex64), Element::kComplex64);
  for (const Element element : all()) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      EXPECT_TRUE(widens_to(element, accumulator_of(op, element))) << to_string(element);
    }
  }
}

TEST(Element, WideningLosesNothing) {
  const auto yes = [](Element from, Element to) {
    EXPECT_TRUE(widens_to(from, to)) << to_string(from) << to_string(to);
  };
  const auto no = [](Element from, Element to) {
    EXPECT_FALSE(widens_to(from, to)) << to_string(from) << to_string(to);
  };
  yes(Element::kFloat16, Element::kFloat32);
  yes(Element::kBFloat16, Element::kFloat32);
  yes(Element::kFloat32, Element::kFloat64);
  yes(Element::kFloat32, Element::kComplex64);
  yes(Element::kInt32, Element::kFloat64);
  yes(Element::kUInt8, Element::kInt16);
  yes(Element::kUInt64, Element::kInt128);
  yes(Element::kInt8, Element::kBFloat16);
  yes(Element::kBool, Element::kUInt8);
  no(Element::kFloat16, Element::kBFloat16);
  no(Element::kBFloat16, Element::kFloat16);
  no(Element::kInt32, Element::kFloat32);
  no(Element::kInt64, Element::kFloat64);
  no(Element::kInt8, Element::kUInt8);
  no(Element::kInt8, Element::kUInt128);
  no(Element::kUInt64, Element::kInt64);
  no(Element::kUInt128, Element::kInt128);
  no(Element::kFloat32, Element::kInt128);
  no(Element::kComplex64, Element::kFloat64);
  no(Element::kUInt8, Element::kBool);
  // An order: reflexive, transitive, and not the same in both directions.
  for (const Element a : all()) {
    yes(a, a);
    for (const Element b : all()) {
      EXPECT_FALSE(a != b && widens_to(a, b) && widens_to(b, a));
      for (const Element c : all()) EXPECT_TRUE(!widens_to(a, b) || !widens_to(b, c) || widens_to(a, c));
    }
  }
}

}  // namespace
}  // namespace onesum
