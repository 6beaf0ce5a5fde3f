// The host's kernels against the reference: sizes, alignments, aliasing, special values, every instruction
// set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernel_cases.h"

namespace onesum::engine::testing {
namespace {

struct Types {
  Element input, accumulator, output;
};
constexpr Types kSums[] = {
    {Element::kUInt8, Element::kUInt8, Element::kUInt8},
    {Element::kInt16, Element::kInt16, Element::kInt16},
    {Element::kInt32, Element::kInt32, Element::kInt32},
    {Element::kUInt64, Element::kUInt64, Element::kUInt64},
    {Element::kFloat16, Element::kFloat32, Element::kFloat16},
    {Element::kBFloat16, Element::kFloat32, Element::kBFloat16},
    {Element::kFloat16, Element::kFloat32, Element::kFloat32},
    {Element::kFloat32, Element::kFloat32, Element::kBFloat16},
    {Element::kFloat32, Element::kFloat32, Element::kFloat32},
    {Element::kFloat64, Element::kFloat64, Element::kFloat64},
    {Element::kComplex64, Element::kComplex64, Element::kComplex64},
    {Element::kComplex128, Element::kComplex128, Element::kComplex128},
    {Element::kInt8, Element::kInt64, Element::kFloat32},
    {Element::kUInt32, Element::kUInt64, Element::kFloat64},
    {Element::kInt64, Element::kInt128, Element::kFloat64},
    {Element::kUInt64, Element::kUInt128, Element::kUInt128},
};
bool is_float(Element element) { return (element >= Element::kFloat16 && element <= Element::kComplex128); }

TEST_P(Kernels, EveryCount) {
  for (const Types& types : kSums) {
    for (const std::size_t count :
         Sizes{0, 1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 127, 509, 1021, 4099, 10007}) {
      for (const std::size_t sources : Sizes{2, 3, 4, 5, 8, 9}) {
        Case c = make(types.input, types.accumulator, types.output, sources, count);
        c.form.divisor = is_float(types.output) && sources != 3 ? static_cast<std::int64_t>(sources) : 1;
        c.form.destinations = 1 + sources % 3;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, EverySourcesAndDestinationsAndAnyTree) {
  for (const Types& types : kSums) {
    for (std::size_t sources = 1; sources <= 17; ++sources) {
      for (std::size_t destinations = 1; destinations <= 5; ++destinations) {
        Case c = make(types.input, types.accumulator, types.output, sources, 150 + sources);
        c.form.destinations = destinations;
        check(c);
        c.merges = random_tree(sources, random_);
        c.form.divisor = is_float(types.output) ? 7 : 1;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, ManySourcesAndDestinations) {
  for (const std::size_t sources : Sizes{33, 64, 100, 255}) {
    Case c = make(Element::kFloat32, Element::kFloat32, Element::kFloat32, sources, 3001);
    c.form.destinations = 40;
    check(c);
    c.aliased = 1;
    check(c);
    c.merges = random_tree(sources, random_);
    check(c);
    // ((…(a+b)+c)+…), and a+(b+(c+…)), whose stack is as deep as it is long.
    c.merges.assign(sources, 1);
    c.merges[0] = 0;
    check(c);
    c.aliased = static_cast<int>(sources) - 1;  // which the last addition reads, for all destinations
    check(c);
    c.merges.assign(sources, 0);
    c.merges.back() = static_cast<std::uint8_t>(sources - 1);
    check(c);
  }
}

TEST_P(Kernels, EveryMisalignment) {
  for (const Types& types : kSums) {
    for (std::size_t offset = 0; offset <= 64; ++offset) {
      Case c = make(types.input, types.accumulator, types.output, 2 + offset % 4, 700);
      c.form.destinations = 1 + offset % 3;
      c.source_misalignment = offset;
      c.destination_misalignment = offset * 3 + 1;
      check(c);
      c.source_misalignment = 0;
      c.destination_misalignment = offset;
      c.same_misalignment = true;
      for (const bool streaming : {false, true}) {
        c.form.streaming = streaming;
        check(c);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Kernels, StreamingStoresGiveTheSame) {
  for (const Types& types : kSums) {
    for (const std::size_t sources : Sizes{1, 2, 4, 6, 8, 13}) {
      for (std::size_t destinations = 1; destinations <= 3; ++destinations) {
        Case c = make(types.input, types.accumulator, types.output, sources, 5003);
        c.form.destinations = destinations;
        c.form.streaming = true;
        c.same_misalignment = destinations != 2;
        c.destination_misalignment = 16 * (sources % 3);
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, ADestinationMayBeASource) {
  for (const Types& types : kSums) {
    if (size_of(types.input) != size_of(types.output)) continue;
    for (std::size_t sources = 1; sources <= 10; ++sources) {
      for (int aliased = 0; aliased < static_cast<int>(sources); ++aliased) {
        Case c = make(types.input, types.accumulator, types.output, sources, 2100);
        c.aliased = aliased;
        c.form.destinations = 2;
        c.source_misalignment = sources % 2 == 0 ? 0 : 8;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, CopiesKeepEveryBit) {
  for (const Element element : kAllElements) {
    for (const std::size_t count : Sizes{0, 1, 5, 64, 1000, 5001}) {
      for (std::size_t destinations = 1; destinations <= 5; ++destinations) {
        Case c = make(element, element, element, 1, count);
        c.form.destinations = destinations;
        for (const std::size_t offset : Sizes{0, 1, 17}) {
          c.source_misalignment = offset;
          c.destination_misalignment = 2 * offset;
          c.form.streaming = offset == 0;
          c.aliased = offset == 17 ? 0 : -1;
          Bytes content(count * size_of(element));
          for (std::byte& byte : content) byte = static_cast<std::byte>(random_());
          ASSERT_EQ(run_on(c, {content}), "") << describe(c);
        }
      }
    }
  }
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Conversions of one source, and sums of 128 bits: passes that other forms only use from within.
TEST_P(Kernels, ConversionsAndWideSumsBeginAnywhere) {
  constexpr Types kForms[] = {
      {Element::kInt32, Element::kInt64, Element::kInt64},
      {Element::kUInt16, Element::kUInt64, Element::kUInt64},
      {Element::kInt64, Element::kInt64, Element::kFloat64},
      {Element::kUInt64, Element::kUInt64, Element::kFloat32},
      {Element::kInt128, Element::kInt128, Element::kFloat64},
      {Element::kInt128, Element::kInt128, Element::kInt128},
      {Element::kFloat16, Element::kFloat32, Element::kFloat32},
      {Element::kFloat32, Element::kFloat32, Element::kBFloat16},
  };
  for (const Types& types : kForms) {
    for (const std::size_t sources : Sizes{1, 2}) {
      for (const std::size_t count : Sizes{1, 5, 300, 1001}) {
        Case c = make(types.input, types.accumulator, types.output, sources, count);
        c.first = 1 + count % 3;
        c.form.destinations = 2;
        c.form.divisor = is_float(types.output) ? 3 : 1;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, IntegersWrapInSumsAndNotInMeans) {
  const std::vector<std::int32_t> extremes = {std::numeric_limits<std::int32_t>::max(),
                                              std::numeric_limits<std::int32_t>::min(), -1, 0};
  Case sum = make(Element::kInt32, Element::kInt32, Element::kInt32, 2, 4);
  EXPECT_EQ(run_on(sum, {bytes_of(extremes), bytes_of(extremes)}), "");
  Case mean = make(Element::kInt32, Element::kInt64, Element::kFloat64, 2, 4);
  mean.form.divisor = 2;
  EXPECT_EQ(run_on(mean, {bytes_of(extremes), bytes_of(extremes)}), "");
  const Bytes expected = bytes_of<double>({2147483647.0, -2147483648.0, -1.0, 0.0});
  ReduceForm form = mean.form;
  form.merges = mean.merges;
  EXPECT_EQ(reference_reduce(form, std::vector<Bytes>{bytes_of(extremes), bytes_of(extremes)}, 4), expected);

  const std::vector<std::uint64_t> large(5, std::numeric_limits<std::uint64_t>::max());
  Case wide = make(Element::kUInt64, Element::kUInt128, Element::kFloat64, 4, 5);
  wide.form.divisor = 4;
  const std::vector<Bytes> sources(4, bytes_of(large));
  EXPECT_EQ(run_on(wide, sources), "");
  form = wide.form;
  form.merges = wide.merges;
  EXPECT_EQ(reference_reduce(form, sources, 5), bytes_of(std::vector<double>(5, 18446744073709551616.0)));
}

TEST_P(Kernels, AllSixteenBitFloatsConvertExactly) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    const Case widen = make(narrow, Element::kFloat32, Element::kFloat32, 1, all.size());
    EXPECT_EQ(run_on(widen, {bytes_of(all)}), "") << describe(widen);
    // Sums round, once: every number with others, with itself, with -0, and with numbers that are a little
    // less or more than half of what a larger one is a multiple of.
    std::vector<std::uint16_t> shuffled = all;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    std::vector<std::vector<std::uint16_t>> others = {shuffled, all};
    static constexpr std::uint16_t kOthers[] = {0x8000, 0x0001, 0x03FF, 0x0400, 0x1001, 0x8FFF,
                                                0x3C00, 0x3C01, 0xBBFF, 0x4BFF, 0x4C00, 0x7BFF,
                                                0x7C00, 0xFC00, 0x7C01, 0xFFFF, 0x7F80, 0x7F81};
    for (const std::uint16_t one : kOthers) {
      others.emplace_back(all.size(), one);
    }
    for (const std::vector<std::uint16_t>& other : others) {
      const Case sum = make(narrow, Element::kFloat32, narrow, 2, all.size());
      EXPECT_EQ(run_on(sum, {bytes_of(all), bytes_of(other)}), "") << describe(sum);
    }
  }
}

TEST_P(Kernels, RoundingToSixteenBitsIsToNearestEven) {
  // Around every number of the narrow type: itself, the tie with its successor, and the floats beside the
  // tie.
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const auto next = static_cast<std::uint16_t>(bits + 1);
      const bool is_half = narrow == Element::kFloat16;
      const float value = is_half ? float_of_half(half) : float_of_bfloat(half);
      const float successor = is_half ? float_of_half(next) : float_of_bfloat(next);
      const auto tie = static_cast<float>((static_cast<double>(value) + static_cast<double>(successor)) / 2);
      values.insert(values.end(), {value, tie, std::nextafter(tie, value), std::nextafter(tie, successor)});
    }
    for (const float special :
         {65519.99F, 65520.0F, 65536.0F, 3.4028235e38F, 3.3961776e38F, 1e-45F, 2.98e-8F, 2.99e-8F}) {
      values.insert(values.end(), {special, -special});
    }
    for (const std::uint32_t nan :
         {0x7F800001U, 0x7F80FFFFU, 0x7FBFFFFFU, 0x7FC00000U, 0x7FFF8000U, 0x7FFFFFFFU}) {
      for (int lane = 0; lane < 33; ++lane) {
        values.insert(values.end(), {std::bit_cast<float>(nan), std::bit_cast<float>(nan | 0x80000000U)});
      }
    }
    const Case c = make(Element::kFloat32, Element::kFloat32, narrow, 1, values.size());
    EXPECT_EQ(run_on(c, {bytes_of(values)}), "") << describe(c);
  }
}

TEST_P(Kernels, SignedZerosAndSpecialsFollowTheRules) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {-0.0F, 0.0F, -0.0F, inf, inf, nan, 1e-45F, 3e38F};
  const std::vector<float> b = {-0.0F, -0.0F, 0.0F, inf, -inf, 1.0F, 1e-45F, 3e38F};
  const std::vector<float> sums = {-0.0F, 0.0F, 0.0F, inf, nan, nan, 3e-45F, inf};
  Case c = make(Element::kFloat32, Element::kFloat32, Element::kFloat32, 2, a.size());
  EXPECT_EQ(run_on(c, {bytes_of(a), bytes_of(b)}), "");
  ReduceForm form = c.form;
  form.merges = c.merges;
  EXPECT_EQ(difference(Element::kFloat32,
                       reference_reduce(form, std::vector<Bytes>{bytes_of(a), bytes_of(b)}, a.size()),
                       bytes_of(sums)),
            "");
}

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(kTargets), name_of_target);

}  // namespace
}  // namespace onesum::engine::testing
