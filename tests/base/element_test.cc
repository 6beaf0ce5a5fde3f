// docs/semantics.md, rule 3.4, and the types inside plans.
#include "base/element.h"

#include <vector>

#include <gtest/gtest.h>

namespace onesum {
namespace {

std::vector<Element> all_elements() {
  std::vector<Element> elements;
  for (int i = 0; i < kNumElements; ++i) elements.push_back(static_cast<Element>(i));
  return elements;
}

TEST(Element, ADTypesElementIsThatType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(to_string(element_of(dtype)), to_string(dtype));
    EXPECT_EQ(size_of(element_of(dtype)), size_of(dtype));
  }
  EXPECT_EQ(size_of(Element::kInt128), 16U);
  EXPECT_EQ(size_of(Element::kUInt128), 16U);
}

TEST(Element, NamesParseBack) {
  for (const Element element : all_elements()) EXPECT_EQ(parse_element(to_string(element)), element);
  for (const char* text : {"", "f32", "Float32", "float", "int128 ", "int256"}) {
    EXPECT_EQ(parse_element(text), std::nullopt) << text;
  }
}

// 3.4
TEST(Accumulator, OfASumIsTheInputsTypeButFor16BitFloats) {
  for (const Element element : all_elements()) {
    const bool is_short_float = element == Element::kFloat16 || element == Element::kBFloat16;
    EXPECT_EQ(accumulator_of(ReduceOp::kSum, element), is_short_float ? Element::kFloat32 : element);
  }
}

TEST(Accumulator, OfAMeanOfIntegersIsWider) {
  for (const Element element : {Element::kInt8, Element::kInt16, Element::kInt32}) {
    EXPECT_EQ(accumulator_of(ReduceOp::kMean, element), Element::kInt64);
  }
  for (const Element element : {Element::kUInt8, Element::kUInt16, Element::kUInt32}) {
    EXPECT_EQ(accumulator_of(ReduceOp::kMean, element), Element::kUInt64);
  }
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kInt64), Element::kInt128);
  EXPECT_EQ(accumulator_of(ReduceOp::kMean, Element::kUInt64), Element::kUInt128);
  for (const Element element : {Element::kFloat16, Element::kBFloat16}) {
    EXPECT_EQ(accumulator_of(ReduceOp::kMean, element), Element::kFloat32);
  }
  for (const Element element :
       {Element::kFloat32, Element::kFloat64, Element::kComplex64, Element::kComplex128}) {
    EXPECT_EQ(accumulator_of(ReduceOp::kMean, element), element);
  }
}

// What only chooses or combines bits needs no more of them.
TEST(Accumulator, OfTheOtherOperationsIsTheInputsTypeButForProductsOf16BitFloats) {
  for (const Element element : all_elements()) {
    const bool is_short_float = element == Element::kFloat16 || element == Element::kBFloat16;
    EXPECT_EQ(accumulator_of(ReduceOp::kProduct, element), is_short_float ? Element::kFloat32 : element);
    for (const ReduceOp op :
         {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor}) {
      EXPECT_EQ(accumulator_of(op, element), element);
    }
  }
}

TEST(WidensTo, LosesNothing) {
  EXPECT_TRUE(widens_to(Element::kInt8, Element::kInt16));
  EXPECT_TRUE(widens_to(Element::kUInt8, Element::kInt16));
  EXPECT_TRUE(widens_to(Element::kUInt64, Element::kInt128));
  EXPECT_TRUE(widens_to(Element::kFloat16, Element::kFloat32));
  EXPECT_TRUE(widens_to(Element::kBFloat16, Element::kFloat32));
  EXPECT_TRUE(widens_to(Element::kInt32, Element::kFloat64));
  EXPECT_TRUE(widens_to(Element::kFloat32, Element::kComplex64));
  EXPECT_TRUE(widens_to(Element::kBool, Element::kUInt8));
  EXPECT_FALSE(widens_to(Element::kInt8, Element::kUInt64));
  EXPECT_FALSE(widens_to(Element::kUInt32, Element::kInt32));
  EXPECT_FALSE(widens_to(Element::kInt32, Element::kFloat32));
  EXPECT_FALSE(widens_to(Element::kFloat16, Element::kBFloat16));
  EXPECT_FALSE(widens_to(Element::kBFloat16, Element::kFloat16));
  EXPECT_FALSE(widens_to(Element::kFloat64, Element::kFloat32));
  EXPECT_FALSE(widens_to(Element::kFloat32, Element::kInt128));
  EXPECT_FALSE(widens_to(Element::kComplex64, Element::kFloat64));
  EXPECT_FALSE(widens_to(Element::kUInt8, Element::kBool));
}

TEST(WidensTo, IsAnOrder) {
  for (const Element a : all_elements()) {
    EXPECT_TRUE(widens_to(a, a));
    for (const Element b : all_elements()) {
      if (a != b) {
        EXPECT_FALSE(widens_to(a, b) && widens_to(b, a)) << to_string(a) << ' ' << to_string(b);
      }
      for (const Element c : all_elements()) {
        if (widens_to(a, b) && widens_to(b, c)) {
          EXPECT_TRUE(widens_to(a, c)) << to_string(a) << ' ' << to_string(b) << ' ' << to_string(c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace onesum
