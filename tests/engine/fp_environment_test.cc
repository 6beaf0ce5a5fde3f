// Whatever the caller's floating-point environment is, sums have the same bits and the environment survives.
#include "engine/host/fp_environment.h"

#include <cfenv>
#include <vector>

#include <gtest/gtest.h>

#include "engine/host/host_engine.h"

namespace onesum::engine {
namespace {

#if defined(__x86_64__)

constexpr std::uint32_t kFlushToZero = 0x8000;
constexpr std::uint32_t kDenormalsAreZero = 0x0040;
constexpr std::uint32_t kRoundUp = 0x4000;
constexpr std::uint32_t kTrapInvalid = 0x0080;  // a mask bit: cleared to trap

std::vector<float> sums_of_subnormals(ThreadedEngine& engine, std::uint32_t segments) {
  struct Work {
    ReduceForm form;
    std::vector<float> a = std::vector<float>(1000, 1e-40F);
    std::vector<float> b = std::vector<float>(1000, 2e-41F);
    std::vector<float> sum = std::vector<float>(1000, -1.0F);
    Kernel kernel = nullptr;
    std::size_t length = 0;
  } work;
  for (std::size_t i = 0; i < 1000; i += 3) work.a[i] = 1.0F, work.b[i] = 1e-10F;
  const std::uint8_t merges[] = {0, 1};
  work.form.merges = merges;
  work.kernel = engine.reduce_kernel(work.form);
  work.length = 1000 / segments;
  engine.run_segments(
      segments,
      [](void* context, std::uint32_t segment) noexcept {
        auto* w = static_cast<Work*>(context);
        const std::byte* const from[] = {reinterpret_cast<std::byte*>(w->a.data()),
                                         reinterpret_cast<std::byte*>(w->b.data())};
        std::byte* const to[] = {reinterpret_cast<std::byte*>(w->sum.data())};
        w->kernel({&w->form, to, from, segment * w->length, w->length});
      },
      &work);
  return work.sum;
}

TEST(FpEnvironment, TheCallersSettingsChangeNothingAndSurvive) {
  const auto engine = make_host_engine({.threads = 2, .pool_limit_bytes = {}});
  const std::uint32_t saved = _mm_getcsr();
  const std::vector<float> expected = sums_of_subnormals(*engine, 1);
  EXPECT_EQ(expected[1], 1e-40F + 2e-41F);
  for (const std::uint32_t control :
       {0x1F80U | kFlushToZero, 0x1F80U | kDenormalsAreZero, 0x1F80U | kRoundUp, 0x1F80U & ~kTrapInvalid,
        0x1F80U | kFlushToZero | kDenormalsAreZero | kRoundUp}) {
    for (const std::uint32_t segments : {1U, 4U, 10U}) {
      _mm_setcsr(control);
      const std::vector<float> found = sums_of_subnormals(*engine, segments);
      const std::uint32_t after = _mm_getcsr();
      _mm_setcsr(saved);
      EXPECT_EQ(found, expected) << std::hex << control;
      EXPECT_EQ(after, control);
    }
  }
}

#endif

TEST(FpEnvironment, RestoresTheRoundingMode) {
  std::fesetround(FE_DOWNWARD);
  {
    const host::FpEnvironment standard;
    volatile float one = 1.0F;
    volatile float tiny = -1e-20F;
    EXPECT_EQ(one + tiny, 1.0F);
  }
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace onesum::engine
