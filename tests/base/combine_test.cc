// What replicas are combined by: names, and which types have it.
#include "base/combine.h"

#include <string>

#include <gtest/gtest.h>

namespace onesum {
namespace {

TEST(Combine, NamesParseBack) {
  for (int i = 0; i < kNumCombines; ++i) {
    const auto combine = static_cast<Combine>(i);
    EXPECT_EQ(parse_combine(to_string(combine)), combine);
  }
  for (const char* text : {"", "mean", "Sum", "min ", "and", "unknown"}) {
    EXPECT_EQ(parse_combine(text), std::nullopt) << text;
  }
  EXPECT_EQ(to_string(static_cast<Combine>(kNumCombines)), "unknown");
}

TEST(ReduceOps, NamesParseBackAndAreThoseOfTheirCombine) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(kLastReduceOp); ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(reduce_op_named(name_of(op)), op);
    if (op != ReduceOp::kMean) {
      EXPECT_EQ(to_string(combine_of(op)), name_of(op));
    }
    names.append(names.empty() ? "" : ", ").append(name_of(op));
  }
  EXPECT_EQ(combine_of(ReduceOp::kMean), Combine::kSum);
  EXPECT_EQ(names, reduce_op_names());
  EXPECT_EQ(reduce_op_named("average"), std::nullopt);
  EXPECT_EQ(name_of(static_cast<ReduceOp>(99)), "unknown");
}

// The order of the enumeration is part of what workers tell each other.
TEST(ReduceOps, KeepTheirNumbers) {
  EXPECT_EQ(reduce_op_names(), "sum, mean, product, min, max, bitand, bitor, bitxor");
}

// 3.11: the table, by the letters of what each type has.
TEST(Defined, ByTheTable) {
  const auto letters = [](Element element) {
    std::string has;
    for (int i = 0; i < kNumCombines; ++i) {
      if (is_defined(static_cast<Combine>(i), element)) has += "spmMaox"[i];
    }
    return has;
  };
  EXPECT_EQ(letters(Element::kBool), "pmMaox");
  for (const Element integer : {Element::kUInt8, Element::kInt8, Element::kUInt16, Element::kInt16,
                                Element::kUInt32, Element::kInt32, Element::kUInt64, Element::kInt64}) {
    EXPECT_EQ(letters(integer), "spmMaox");
  }
  for (const Element real : {Element::kFloat16, Element::kBFloat16, Element::kFloat32, Element::kFloat64}) {
    EXPECT_EQ(letters(real), "spmM");
  }
  for (const Element complex : {Element::kComplex64, Element::kComplex128}) EXPECT_EQ(letters(complex), "sp");
  for (const Element wide : {Element::kInt128, Element::kUInt128}) EXPECT_EQ(letters(wide), "s");
}

}  // namespace
}  // namespace onesum
