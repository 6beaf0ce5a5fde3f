// The host's kernels against the reference: sizes, alignments, aliasing, special values, every instruction
// set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "engine/guarded.h"
#include "engine/host/reduce_kernels.h"
#include "engine/host/simd_kernels.h"
#include "engine/reference.h"

namespace onesum::engine::testing {
namespace {

// Everything one run of a kernel depends on.
struct Case {
  ReduceForm form;
  std::vector<std::uint8_t> merges;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t source_misalignment = 0;  // of source i: i times this, more or less
  std::size_t destination_misalignment = 0;
  bool same_misalignment = false;  // of all destinations
  int aliased = -1;                // this source is the first destination
};

std::string describe(const Case& c) {
  std::ostringstream text;
  text << to_string(c.form.input) << "/" << to_string(c.form.accumulator) << "/" << to_string(c.form.output)
       << " divisor " << c.form.divisor << " destinations " << c.form.destinations << " first " << c.first
       << " count " << c.count << (c.form.streaming ? " streaming" : "") << " misaligned "
       << c.source_misalignment << " " << c.destination_misalignment << " aliased " << c.aliased << " on "
       << host::simd_target() << " merges";
  for (const std::uint8_t merges : c.merges) text << " " << int{merges};
  return text.str();
}

// Runs the case on `content` and says what is wrong with the result; empty if nothing.
std::string run_on(const Case& c, const std::vector<Bytes>& content) {
  ReduceForm form = c.form;
  form.merges = c.merges;
  std::vector<Guarded> sources;
  std::vector<Guarded> destinations;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < content.size(); ++i) {
    sources.emplace_back(content[i], i * c.source_misalignment + c.source_misalignment);
  }
  for (std::size_t i = 0; i < form.destinations; ++i) {
    destinations.emplace_back(c.count * size_of(form.output),
                              (c.same_misalignment ? 1 : i + 1) * c.destination_misalignment);
  }
  // The kernel sees tables of vectors that begin `first` elements earlier.
  const auto before = [&](std::byte* data, Element element) { return data - c.first * size_of(element); };
  for (Guarded& source : sources) from.push_back(before(source.data(), form.input));
  for (Guarded& destination : destinations) to.push_back(before(destination.data(), form.output));
  if (c.aliased >= 0) to[0] = before(sources[static_cast<std::size_t>(c.aliased)].data(), form.output);

  host::find_reduce_kernel(form)({&form, to.data(), from.data(), c.first, c.count});

  const Bytes expected = reference_reduce(form, content, c.count);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const Guarded& written =
        i == 0 && c.aliased >= 0 ? sources[static_cast<std::size_t>(c.aliased)] : destinations[i];
    if (const std::string d = difference(form.output, written.content(), expected); !d.empty()) return d;
    if (!destinations[i].guards_are_intact()) return "wrote beyond a destination";
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].guards_are_intact()) return "wrote beyond a source";
    if (static_cast<int>(i) != c.aliased && sources[i].content() != content[i]) return "changed a source";
  }
  return {};
}

// Every test runs once for each instruction set that this machine has.
#if HWY_ARCH_X86
constexpr std::int64_t kTargets[] = {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR};
#else
constexpr std::int64_t kTargets[] = {HWY_NEON, HWY_SCALAR};
#endif

class Kernels : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (GetParam() != HWY_SCALAR && (hwy::SupportedTargets() & GetParam()) == 0) {
      GTEST_SKIP() << "this machine has no " << hwy::TargetName(GetParam());
    }
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
    if (host::simd_target() != hwy::TargetName(GetParam())) {
      GTEST_SKIP() << "compiled without kernels for " << hwy::TargetName(GetParam());
    }
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  void check(const Case& c) {
    std::vector<Bytes> content;
    for (std::size_t i = 0; i < c.merges.size(); ++i)
      content.push_back(random_elements(c.form.input, c.count, random_));
    ASSERT_EQ(run_on(c, content), "") << describe(c);
  }

  Case make(Element input, Element accumulator, Element output, std::size_t sources, std::size_t count) {
    Case c;
    c.form.input = input;
    c.form.accumulator = accumulator;
    c.form.output = output;
    c.merges = canonical_tree(sources);
    c.first = count % 7;
    c.count = count;
    return c;
  }

  std::mt19937 random_{2024};
};

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

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(kTargets),
                         [](const auto& tested) { return std::string(hwy::TargetName(tested.param)); });

}  // namespace
}  // namespace onesum::engine::testing
