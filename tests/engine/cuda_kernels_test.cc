// The GPU's kernels, compiled for the host, against the host's own: every form gives the same bits. And how
// launches are made of forms and pieces. Needs neither CUDA nor a GPU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "emulated_gpu/checked_reduce_body.h"
#include "engine/cuda/kernel_forms.h"
#include "engine/cuda/launch_arguments.h"
#include "engine/cuda/reduce_steps.h"
#include "engine/host/simd_kernels.h"
#include "engine/reference.h"
#include "engine/twin_runs.h"

namespace onesum::engine::testing {
namespace {

using cuda::ReduceArguments;
using cuda::ReduceStep;
using cuda::ReduceSteps;

ReduceForm make_form(Element input, Element accumulator, Element output) {
  ReduceForm form;
  form.input = input;
  form.accumulator = accumulator;
  form.output = output;
  return form;
}

// Calls visit with every triple of types.
template <class Visit>
void for_all_types(Visit visit) {
  for (const Element input : kAllElements) {
    for (const Element accumulator : kAllElements) {
      for (const Element output : kAllElements) visit(make_form(input, accumulator, output));
    }
  }
}

constexpr std::uint8_t kTwoSources[] = {0, 1};

// Every form of two sources that combines by these.
std::vector<ReduceForm> forms_by(int first, int last) {
  std::vector<ReduceForm> found;
  for (int combine = first; combine <= last; ++combine) {
    for_all_types([&](ReduceForm form) {
      form.merges = kTwoSources;
      form.combine = static_cast<Combine>(combine);
      if (testing::is_defined(form)) found.push_back(form);
    });
  }
  return found;
}
std::vector<ReduceForm> sums() { return forms_by(0, 0); }
std::vector<ReduceForm> other_operations() { return forms_by(1, kNumCombines - 1); }

bool is_float(Element element) { return element >= Element::kFloat16 && element <= Element::kComplex128; }

class CudaKernels : public ::testing::Test {
 protected:
  TwinRun make(const ReduceForm& form, std::size_t sources, std::vector<TwinPiece> pieces) {
    TwinRun run;
    run.form = form;
    run.merges = canonical_tree(sources);
    run.pieces = std::move(pieces);
    return run;
  }

  void check(const TwinRun& run) {
    ASSERT_EQ(difference_from_host(run, random_contents(run, random_)), "") << describe(run);
  }

  std::mt19937 random_{2024};
};

TEST_F(CudaKernels, TakeTheFormsThatTheHostTakes) {
  for_all_types([](ReduceForm form) {
    for (const std::size_t sources : Sizes{1, 2, 7}) {
      for (int variant = 0; variant <= kNumCombines; ++variant) {  // the last one is a mean
        const std::int64_t divisor = variant == kNumCombines ? 2 : 1;
        const std::vector<std::uint8_t> merges = canonical_tree(sources);
        form.merges = merges;
        form.divisor = divisor;
        form.combine = static_cast<Combine>(variant % kNumCombines);
        bool is_taken = true;
        try {
          cuda::find_kernel_form(form);
        } catch (const Error& error) {
          is_taken = false;
          EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        }
        EXPECT_EQ(is_taken, host::find_simd_kernel(form) != nullptr)
            << to_string(form.input) << " " << to_string(form.accumulator) << " " << to_string(form.output)
            << " sources " << sources << " divisor " << divisor << " " << to_string(form.combine);
      }
    }
  });
}

TEST_F(CudaKernels, EveryFormGivesTheHostsBits) {
  for (const ReduceForm& form : sums()) {
    for (const std::size_t sources : Sizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 256}) {
      TwinRun run = make(form, sources, {{3, 37}, {0, 16}, {1, 0}, {2, 1}});
      run.form.destinations = 1 + sources % 3;
      check(run);
      run.merges = random_tree(sources, random_);
      run.form.divisor = is_float(form.output) ? static_cast<std::int64_t>(sources) : 1;
      check(run);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaKernels, EveryOperationGivesTheHostsBits) {
  for (const ReduceForm& form : other_operations()) {
    for (const std::size_t sources : Sizes{2, 3, 4, 5, 8, 9, 33}) {
      TwinRun run =
          make(form, sources, {{3, 37}, {0, 16}, {1, 0}, {2, 1}, {1, 61, sources, 0}, {2, 45, 1, 3}});
      run.form.destinations = 1 + sources % 3;
      check(run);
      run.merges = random_tree(sources, random_);
      if (size_of(form.input) == size_of(form.output)) run.aliased = 1;
      check(run);
      if (form.input != form.accumulator) {
        run.aliased = -1;
        run.is_wide.assign(sources, 0);
        run.is_wide.back() = 1;
        check(run);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaKernels, AnyAlignment) {
  for (const ReduceForm& form : sums()) {
    for (std::size_t offset = 0; offset <= 17; ++offset) {
      // All alike, so that groups begin somewhere; all different; and by elements.
      TwinRun run = make(form, 3, {{1, 61, offset, 0}, {2, 45, 1, offset}, {0, 50, 16, 4 * offset}});
      run.form.destinations = 2;
      run.form.divisor = is_float(form.output) ? 7 : 1;
      check(run);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaKernels, ThreadsShareTheWorkWhateverTheGrid) {
  const ReduceForm form = make_form(Element::kFloat32, Element::kFloat32, Element::kFloat32);
  for (const unsigned blocks : {1U, 2U, 5U, 4000U}) {
    for (const unsigned threads : {1U, 3U, 32U, 256U}) {
      TwinRun run = make(form, 2, {{0, 1}, {0, 1000, 8}, {0, 3}, {0, 77, 4, 4}, {5, 300}});
      run.blocks = blocks;
      run.threads_of_block = threads;
      run.aliased = 1;  // what two threads did would be added twice
      check(run);
    }
  }
}

// Small pieces would otherwise all be the first threads'.
TEST_F(CudaKernels, ThreadsTakeItemsInTurnFromPieceToPiece) {
  ReduceForm form = make_form(Element::kFloat32, Element::kFloat32, Element::kFloat32);
  form.merges = kTwoSources;
  alignas(16) float ones[2] = {1, 1};
  alignas(16) float results[40][2] = {};
  std::byte* pointers[40][3];
  std::vector<cuda::LaunchPiece> pieces;
  for (std::size_t i = 0; i < 40; ++i) {
    auto* const one = reinterpret_cast<std::byte*>(ones);
    pointers[i][0] = reinterpret_cast<std::byte*>(results[i]);
    pointers[i][1] = pointers[i][2] = one;
    pieces.push_back({pointers[i], 0, 2});
  }
  ReduceArguments arguments;
  ASSERT_EQ(cuda::LaunchWriter(form).write(pieces, arguments), 40);
  cuda::reduce_body<float, float, float>(arguments, 7, 10);
  for (std::size_t item = 0; item < 80; ++item) {
    EXPECT_EQ(results[item / 2][item % 2], item % 10 == 7 ? 2.0F : 0.0F) << item;
  }
}

TEST_F(CudaKernels, SourcesMayBeWideAlready) {
  for (const ReduceForm& form : sums()) {
    if (form.input == form.accumulator) continue;
    for (const std::size_t sources : Sizes{2, 3, 4, 5, 8, 9, 33}) {
      for (int variant = 0; variant < 4; ++variant) {
        TwinRun run = make(form, sources, {{1, 41, 4}, {0, 19, 1, 3}, {0, 64}});
        run.is_wide.assign(sources, 0);
        if (variant == 0) run.is_wide.front() = 1;
        if (variant == 1) run.is_wide.back() = 1;
        if (variant == 2) run.is_wide.assign(sources, 1);
        if (variant == 3) {
          for (std::uint8_t& wide : run.is_wide) wide = random_() % 2;
          run.merges = random_tree(sources, random_);
        }
        run.form.divisor = is_float(form.output) ? 3 : 1;
        check(run);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(CudaKernels, ADestinationMayBeASource) {
  for (const ReduceForm& form : sums()) {
    if (size_of(form.input) != size_of(form.output)) continue;
    for (const std::size_t sources : Sizes{1, 2, 3, 4, 7, 8}) {
      for (int aliased = 0; aliased < static_cast<int>(sources); ++aliased) {
        TwinRun run = make(form, sources, {{0, 100}, {1, 33, 8}, {0, 20, 1, 1}});
        run.form.destinations = 2;
        run.aliased = aliased;
        check(run);
        if (HasFatalFailure()) return;
      }
    }
  }
  // A partial sum that a step adds to.
  TwinRun run = make(make_form(Element::kBFloat16, Element::kFloat32, Element::kFloat32), 4, {{0, 91}});
  run.is_wide = {1, 0, 0, 0};
  run.aliased = 0;
  check(run);
}

TEST_F(CudaKernels, CopiesKeepEveryBit) {
  for (const Element element : kAllElements) {
    for (std::size_t offset = 0; offset <= 16; ++offset) {
      TwinRun run =
          make(make_form(element, Element::kBool, element), 1, {{2, 70, offset}, {0, 33, offset, 8}, {0, 1}});
      run.form.destinations = 1 + offset % 3;
      run.aliased = offset == 5 ? 0 : -1;
      Contents contents = random_contents(run, random_);
      for (std::vector<Bytes>& sources : contents) {
        for (std::byte& byte : sources[0]) byte = static_cast<std::byte>(random_());
      }
      ASSERT_EQ(difference_from_host(run, contents), "") << describe(run);
    }
  }
}

TEST_F(CudaKernels, ManyPiecesTakeFewLaunches) {
  const ReduceForm form = make_form(Element::kFloat16, Element::kFloat32, Element::kFloat16);
  for (const std::size_t sources : Sizes{1, 2, 8, 100}) {
    TwinRun run = make(form, sources, {});
    for (std::size_t i = 0; i < 400; ++i) run.pieces.push_back({i % 3, random_() % 40, 2 * (random_() % 8)});
    check(run);
  }
  ReduceForm two = form;
  two.merges = kTwoSources;
  std::byte memory[64];
  std::byte* const pointers[] = {memory, memory, memory};
  const std::vector<cuda::LaunchPiece> pieces(200, cuda::LaunchPiece{pointers, 0, 4});
  ReduceArguments arguments;
  EXPECT_GE(cuda::LaunchWriter(two).write(pieces, arguments), 95);
}

TEST_F(CudaKernels, ManySourcesAndDestinationsAndDeepTrees) {
  const ReduceForm form = make_form(Element::kFloat32, Element::kFloat32, Element::kFloat32);
  for (const std::size_t sources : Sizes{33, 64, 100, 255, 256, 400}) {
    TwinRun run = make(form, sources, {{0, 9}, {1, 4, 4}});
    run.form.destinations = sources == 400 ? 40 : 200;
    run.aliased = 1;
    check(run);
    // ((…(a+b)+c)+…).
    run.merges.assign(sources, 1);
    run.merges[0] = 0;
    check(run);
    // a+(b+(c+…)), as deep as the host's kernels take it.
    if (sources > 256) continue;
    run.merges.assign(sources, 0);
    run.merges.back() = static_cast<std::uint8_t>(sources - 1);
    check(run);
  }
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(CudaKernels, AllSixteenBitFloatsConvertExactly) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    const TwinRun widen = make(make_form(narrow, Element::kFloat32, Element::kFloat32), 1, {{0, all.size()}});
    EXPECT_EQ(difference_from_host(widen, {{bytes_of(all)}}), "") << describe(widen);
    std::vector<std::uint16_t> shuffled = all;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    std::vector<std::vector<std::uint16_t>> others = {shuffled, all};
    static constexpr std::uint16_t kOthers[] = {0x8000, 0x0001, 0x03FF, 0x1001, 0x8FFF,
                                                0x3C01, 0xBBFF, 0x4BFF, 0x7BFF, 0x7C00,
                                                0xFC00, 0x7C01, 0xFFFF, 0x7F80, 0x7F81};
    for (const std::uint16_t one : kOthers) {
      others.emplace_back(all.size(), one);
    }
    for (const std::vector<std::uint16_t>& other : others) {
      const TwinRun sum = make(make_form(narrow, Element::kFloat32, narrow), 2, {{0, all.size()}});
      EXPECT_EQ(difference_from_host(sum, {{bytes_of(all), bytes_of(other)}}), "") << describe(sum);
    }
  }
}

TEST_F(CudaKernels, RoundingToSixteenBitsIsToNearestEven) {
  for (const Element narrow : {Element::kFloat16, Element::kBFloat16}) {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto widen = [&](std::uint32_t b) {
        const auto half = static_cast<std::uint16_t>(b);
        return narrow == Element::kFloat16 ? float_of_half(half) : float_of_bfloat(half);
      };
      const float value = widen(bits);
      const float successor = widen(bits + 1);
      const auto tie = static_cast<float>((static_cast<double>(value) + static_cast<double>(successor)) / 2);
      values.insert(values.end(), {value, tie, std::nextafter(tie, value), std::nextafter(tie, successor)});
    }
    for (const float special :
         {65519.99F, 65520.0F, 65536.0F, 3.4028235e38F, 3.3961776e38F, 1e-45F, 2.98e-8F, 2.99e-8F,
          std::bit_cast<float>(0x7F800001U), std::bit_cast<float>(0x7FFFFFFFU)}) {
      values.insert(values.end(), {special, -special});
    }
    const TwinRun run =
        make(make_form(Element::kFloat32, Element::kFloat32, narrow), 1, {{0, values.size()}});
    EXPECT_EQ(difference_from_host(run, {{bytes_of(values)}}), "") << describe(run);
  }
}

// Numbers of every length, whose lower bits are ties, nearly ties, or anything; and extremes.
template <class Wide>
std::vector<Wide> wide_integers(std::mt19937& random) {
  std::vector<Wide> values = {0, 1, static_cast<Wide>(-1), static_cast<Wide>(Wide{1} << 127),
                              static_cast<Wide>(~(Wide{1} << 127))};
  for (int length = 1; length <= 128; ++length) {
    for (const int digits : {24, 53}) {
      for (int variant = 0; variant < 12; ++variant) {
        Wide value = 0;
        for (int word = 0; word < 4; ++word) value = value << 32 | random();
        value = value >> (128 - length) | Wide{1} << (length - 1);
        if (length > digits && variant < 9) {
          const Wide half = Wide{1} << (length - digits - 1);
          value = (value & ~(2 * half - 1)) + half + static_cast<Wide>(variant % 3 - 1);
          if (variant >= 6) value |= ~(half - 1) & ~(half | half << 1) & ((Wide{1} << (length - 1)) - 1);
        }
        values.insert(values.end(), {value, static_cast<Wide>(0 - value)});
      }
    }
  }
  return values;
}

TEST_F(CudaKernels, SumsOf128BitsAreRoundedOnce) {
  __extension__ using UInt128 = unsigned __int128;
  const Bytes values = bytes_of(wide_integers<UInt128>(random_));
  for (const Element wide : {Element::kInt128, Element::kUInt128}) {
    for (const Element output : {Element::kFloat32, Element::kFloat64}) {
      for (const std::int64_t divisor : {1, 3}) {
        TwinRun run = make(make_form(wide, wide, output), 1, {{0, values.size() / 16}});
        run.form.divisor = divisor;
        EXPECT_EQ(difference_from_host(run, {{values}}), "") << describe(run);
      }
    }
  }
}

TEST_F(CudaKernels, MeansOfExtremeIntegersDoNotWrap) {
  for (const Element input : {Element::kUInt8, Element::kInt8, Element::kUInt16, Element::kInt16,
                              Element::kUInt32, Element::kInt32, Element::kUInt64, Element::kInt64}) {
    const Element accumulator = accumulator_of(ReduceOp::kMean, input);
    for (const Element output : {Element::kFloat32, Element::kFloat64}) {
      TwinRun run = make(make_form(input, accumulator, output), 5, {{0, 40}});
      run.form.divisor = 5;
      const std::size_t bytes = size_of(input);
      for (const unsigned pattern : {0x00U, 0xFFU, 0x7FU, 0x80U}) {  // of the highest byte
        Bytes extreme(40 * bytes, pattern == 0x7F || pattern == 0xFF ? std::byte{0xFF} : std::byte{0});
        for (std::size_t i = 0; i < 40; ++i) extreme[(i + 1) * bytes - 1] = static_cast<std::byte>(pattern);
        EXPECT_EQ(difference_from_host(run, {std::vector<Bytes>(5, extreme)}), "") << describe(run);
      }
    }
  }
}

TEST_F(CudaKernels, SignedZerosAndSpecialsFollowTheRules) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {-0.0F, 0.0F, -0.0F, inf, inf, nan, 1e-45F, 3e38F};
  const std::vector<float> b = {-0.0F, -0.0F, 0.0F, inf, -inf, 1.0F, 1e-45F, 3e38F};
  for (const std::int64_t divisor : {1, 2}) {
    TwinRun run =
        make(make_form(Element::kFloat32, Element::kFloat32, Element::kFloat32), 2, {{0, a.size()}});
    run.form.divisor = divisor;
    EXPECT_EQ(difference_from_host(run, {{bytes_of(a), bytes_of(b)}}), "");
  }
}

TEST_F(CudaKernels, NoTreeNeedsMoreWaitingSumsThanThereAre) {
  for (int round = 0; round < 2000; ++round) {
    const std::size_t sources = 1 + random_() % 430;
    std::vector<std::uint8_t> merges =
        round % 2 == 0 ? canonical_tree(sources) : random_tree(sources, random_);
    std::vector<std::uint8_t> is_wide(sources);
    for (std::uint8_t& wide : is_wide) wide = random_() % 8 == 0;
    const ReduceSteps steps(merges, round % 3 == 0 ? std::span<const std::uint8_t>() : is_wide);
    ASSERT_EQ(steps.num_sources, sources);
    std::size_t waiting = 0;
    for (std::size_t i = 1; i < steps.num_steps; ++i) {
      const ReduceStep step = steps.steps[i];
      ASSERT_LE(step.merges, ReduceStep::kMaxMerges);
      waiting += step.merges == 0 ? 1 : 0;
      ASSERT_LE(waiting, cuda::kMaxWaitingSums);
      if (step.merges > 1) waiting -= step.merges - 1U;
    }
    ASSERT_EQ(waiting, 0);
  }
}

TEST_F(CudaKernels, RefusalsSayWhatIsWrong) {
  const auto refusal_of = [](const ReduceForm& form, std::span<const std::uint8_t> is_wide) -> std::string {
    try {
      const cuda::LaunchWriter writer(form, is_wide);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  ReduceForm form = make_form(Element::kBool, Element::kBool, Element::kBool);
  form.merges = kTwoSources;
  EXPECT_THAT(refusal_of(form, {}), ::testing::HasSubstr("is defined for input bool"));
  form = make_form(Element::kFloat16, Element::kFloat32, Element::kFloat16);
  form.merges = kTwoSources;
  const std::uint8_t flags[] = {1, 0, 0};
  EXPECT_THAT(refusal_of(form, flags), ::testing::HasSubstr("2 sources has 3 flags"));
  const std::vector<std::uint8_t> one = canonical_tree(1);
  form.merges = one;
  EXPECT_THAT(refusal_of(form, std::span(flags, 1)), ::testing::HasSubstr("that is a conversion"));
  form.merges = std::span(kTwoSources, 0);
  EXPECT_THAT(refusal_of(form, {}), ::testing::HasSubstr("at least one source"));
  const std::vector<std::uint8_t> many = canonical_tree(400);
  form.merges = many;
  form.destinations = 60;
  EXPECT_THAT(refusal_of(form, {}), ::testing::HasSubstr("400 sources to 60 destinations"));
}

}  // namespace
}  // namespace onesum::engine::testing
