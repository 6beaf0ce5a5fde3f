// On x86-64 the processor counts ticks at a constant rate, and reading them takes half as long as asking the
// system what time it is. Each thread asks the system about every millisecond, and counts ticks in between.
#include "base/clock.h"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace onesum {
namespace {

#if defined(__x86_64__)

// Whether ticks come at the same rate whatever the processor does.
bool has_constant_ticks() noexcept {
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTicks = 1U << 8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTicks) != 0;
}

const bool kCanCountTicks = has_constant_ticks();

std::uint64_t ticks() noexcept { return __rdtsc(); }

#else

constexpr bool kCanCountTicks = false;

std::uint64_t ticks() noexcept { return 0; }

#endif

constexpr unsigned kFraction = 24;                       // bits, of nanoseconds for a tick
constexpr std::uint64_t kTicksPerLook = 1U << 21;        // half a millisecond to a whole one
constexpr std::chrono::microseconds kLeastToLearn{200};  // the rate, to a hundredth at worst
constexpr std::chrono::seconds kMostToLearn{1};
// Between the ticks before and after a look: more, and the thread was stopped in between, so that the ticks
// do not belong to the time.
constexpr std::uint64_t kMostTicksOfALook = 4000;

// When this thread last asked the system.
struct Look {
  std::uint64_t ticks = 0;
  Clock::time_point time;
  std::uint64_t rate = 0;       // nanoseconds for a tick, in fractions
  std::uint64_t valid_for = 0;  // ticks

  Clock::time_point at(std::uint64_t counted) const noexcept {
    return time + std::chrono::nanoseconds(counted * rate >> kFraction);
  }
};

// Addressed without a call of the loader, in shared libraries too: a few bytes that it has in reserve.
[[gnu::tls_model("initial-exec")]] constinit thread_local Look last;

std::uint64_t rate_of(Clock::duration passed, std::uint64_t counted) noexcept {
  return (static_cast<std::uint64_t>(passed.count()) << kFraction) / counted;
}

[[gnu::noinline]] Clock::time_point look() noexcept {
  if (!kCanCountTicks) return Clock::now();
  const std::uint64_t before = ticks();
  const Clock::time_point time = Clock::now();
  const std::uint64_t count = ticks();
  // What was counted so far may be ahead of the system by as much as the rate was off.
  const Clock::time_point found = std::max(time, last.at(last.valid_for));
  if (count - before > kMostTicksOfALook) return found;
  const Clock::duration passed = time - last.time;
  if (last.ticks == 0 || count <= last.ticks || passed > kMostToLearn) {
    last = {count, found, 0, 0};
  } else if (passed >= kLeastToLearn) {
    last = {count, found, rate_of(passed, count - last.ticks), kTicksPerLook};
  }
  return found;
}

}  // namespace

Clock::time_point now() noexcept {
  const std::uint64_t counted = ticks() - last.ticks;
  if (counted >= last.valid_for) return look();
  return last.at(counted);
}

}  // namespace onesum
