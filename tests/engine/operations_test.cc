// The host's kernels of products, minima, maxima and operations on bits against the reference, for every
// instruction set.
#include <bit>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernel_cases.h"

namespace onesum::engine::testing {
namespace {

constexpr Combine kOperations[] = {Combine::kProduct, Combine::kMin,   Combine::kMax,
                                   Combine::kBitAnd,  Combine::kBitOr, Combine::kBitXor};

class Operations : public Kernels {
 protected:
  // Every operation on every type that it takes, in the accumulator that the library chooses.
  std::vector<ReduceForm> forms() {
    static constexpr std::uint8_t kTwoSources[] = {0, 1};
    std::vector<ReduceForm> found;
    for (const Combine combine : kOperations) {
      for (const Element element : kAllElements) {
        const bool is_narrow = element == Element::kFloat16 || element == Element::kBFloat16;
        ReduceForm form;
        form.combine = combine;
        form.input = form.output = element;
        form.accumulator = is_narrow && combine == Combine::kProduct ? Element::kFloat32 : element;
        form.merges = kTwoSources;
        if (testing::is_defined(form)) found.push_back(form);
      }
    }
    return found;
  }

  Case make_of(const ReduceForm& form, std::size_t sources, std::size_t count) {
    Case c = make(form.input, form.accumulator, form.output, sources, count);
    c.form.combine = form.combine;
    return c;
  }
};

TEST_P(Operations, ThereAreAsManyAsTheTableOfTypesHas) {
  // Of 15 types all have products, 13 an order, 9 bits.
  EXPECT_EQ(forms().size(), 15U + 2 * 13 + 3 * 9);
}

TEST_P(Operations, EverySourcesAndSize) {
  for (const ReduceForm& form : forms()) {
    for (const std::size_t sources : Sizes{1, 2, 3, 4, 5, 8, 9}) {
      for (const std::size_t count : Sizes{0, 1, 2, 17, 61, 64, 257, 1021, 4099}) {
        Case c = make_of(form, sources, count);
        c.form.destinations = 1 + sources % 3;
        c.form.streaming = count == 4099;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Operations, AnyTreeAndManyDestinations) {
  for (const ReduceForm& form : forms()) {
    for (std::size_t sources = 2; sources <= 13; ++sources) {
      for (const std::size_t destinations : Sizes{1, 2, 5, 40}) {
        Case c = make_of(form, sources, 150 + sources);
        c.form.destinations = destinations;
        c.merges = random_tree(sources, random_);
        check(c);
        c.merges.assign(sources, 1);  // from left to right
        c.merges[0] = 0;
        check(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Operations, AnyAlignmentAndADestinationThatIsASource) {
  for (const ReduceForm& form : forms()) {
    for (std::size_t offset = 0; offset <= 33; ++offset) {
      Case c = make_of(form, 2 + offset % 4, 700);
      c.form.destinations = 1 + offset % 3;
      c.source_misalignment = offset;
      c.destination_misalignment = offset * 3 + 1;
      check(c);
      c.aliased = static_cast<int>(offset % c.merges.size());
      check(c);
      if (HasFatalFailure()) return;
    }
  }
}

// Partial products of 16-bit floats are in 32 bits, and a result may be rounded from them.
TEST_P(Operations, ProductsOf16BitFloatsAreRoundedOnce) {
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    for (const std::size_t sources : Sizes{2, 3, 4, 6}) {
      for (const bool is_partial : {false, true}) {
        Case c = make(is_partial ? narrow : Element::kFloat32, Element::kFloat32,
                      is_partial ? Element::kFloat32 : narrow, sources, 5003);
        c.form.combine = Combine::kProduct;
        check(c);
      }
    }
  }
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// 3.12: in figures, so that the reference is not believed either.
TEST_P(Operations, NanWinsAndZerosHaveAnOrder) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float signalling = std::bit_cast<float>(0xFFA00000U);
  const std::vector<float> a = {-0.0F, 0.0F, nan, 1, -inf, signalling, 1e-45F, -inf, 3, nan};
  const std::vector<float> b = {0.0F, -0.0F, 1, nan, inf, 7, -1e-45F, nan, 3, nan};
  const std::vector<float> least = {-0.0F, -0.0F, nan, nan, -inf, nan, -1e-45F, nan, 3, nan};
  const std::vector<float> greatest = {0.0F, 0.0F, nan, nan, inf, nan, 1e-45F, nan, 3, nan};
  for (const bool is_min : {true, false}) {
    Case c = make(Element::kFloat32, Element::kFloat32, Element::kFloat32, 2, a.size());
    c.form.combine = is_min ? Combine::kMin : Combine::kMax;
    for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
      EXPECT_EQ(run_on(c, {bytes_of(x), bytes_of(y)}), "");
      ReduceForm form = c.form;
      form.merges = c.merges;
      EXPECT_EQ(difference(Element::kFloat32,
                           reference_reduce(form, std::vector<Bytes>{bytes_of(x), bytes_of(y)}, a.size()),
                           bytes_of(is_min ? least : greatest)),
                "");
    }
  }
}

TEST_P(Operations, AllPairsOf16BitFloatsWithSpecialOnes) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    for (const Combine combine : {Combine::kMin, Combine::kMax, Combine::kProduct}) {
      for (const unsigned other : {0x0000U, 0x8000U, 0x0001U, 0x3C00U, 0x7C00U, 0x7C01U, 0xFC00U, 0xFE00U,
                                   0x7F80U, 0x7F81U, 0xFF80U, 0xFFFFU, 0x1234U, 0xB3FFU}) {
        Case c =
            make(narrow, combine == Combine::kProduct ? Element::kFloat32 : narrow, narrow, 2, all.size());
        c.form.combine = combine;
        const std::vector<std::uint16_t> others(all.size(), static_cast<std::uint16_t>(other));
        ASSERT_EQ(run_on(c, {bytes_of(all), bytes_of(others)}), "") << describe(c) << " " << other;
      }
    }
  }
}

TEST_P(Operations, AllPairsOfBytes) {
  std::vector<std::uint8_t> left, right;
  for (unsigned i = 0; i < 65536; ++i) {
    left.push_back(static_cast<std::uint8_t>(i));
    right.push_back(static_cast<std::uint8_t>(i >> 8));
  }
  for (const Combine combine : kOperations) {
    for (const Element element : {Element::kUInt8, Element::kInt8}) {
      Case c = make(element, element, element, 2, left.size());
      c.form.combine = combine;
      EXPECT_EQ(run_on(c, {bytes_of(left), bytes_of(right)}), "") << describe(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Operations, ::testing::ValuesIn(kTargets), name_of_target);

}  // namespace
}  // namespace onesum::engine::testing
