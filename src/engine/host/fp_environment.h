// The floating-point environment that sums are formed in: round to nearest, subnormals kept, no traps.
//
// It belongs to the thread, and callers change it: -ffast-math start-up code and other libraries set
// flush-to-zero, in some threads and not in others. With it the bits of a sum would depend on who forms it.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace onesum::engine::host {

// Sets the standard environment and restores the caller's at the end of the scope. Costs a few nanoseconds,
// most of them only if there is something to change.
class FpEnvironment {
 public:
  FpEnvironment() noexcept : saved_(read()) {
    if (!is_standard(saved_)) write(kStandard);
  }
  ~FpEnvironment() {
    if (!is_standard(saved_)) write(saved_);
  }
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;

  // For threads of our own: sets it for good.
  static void set_standard() noexcept { write(kStandard); }

 private:
#if defined(__x86_64__)
  using Control = std::uint32_t;
  static constexpr Control kStandard = 0x1F80;  // MXCSR at the start of a program: all exceptions masked
  static constexpr Control kFlags = 0x3F;       // exceptions that have occurred; not a setting
  static Control read() noexcept { return _mm_getcsr(); }
  static void write(Control control) noexcept { _mm_setcsr(control); }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control kStandard = 0;  // FPCR; its flags are in a register of their own
  static constexpr Control kFlags = 0;
  static Control read() noexcept {
    Control control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void write(Control control) noexcept { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#else
#error "FpEnvironment needs the floating-point control register of this processor"
#endif
  static bool is_standard(Control control) noexcept { return (control & ~kFlags) == kStandard; }

  Control saved_;
};

}  // namespace onesum::engine::host
