// Remainders by a number that is known long before: a power of two costs no division.
#pragma once

#include <cstdint>

namespace onesum {

class Modulus {
 public:
  constexpr explicit Modulus(std::uint64_t divisor) noexcept
      : divisor_(divisor), is_power_((divisor & (divisor - 1)) == 0) {}

  constexpr std::uint64_t of(std::uint64_t value) const noexcept {
    return is_power_ ? value & (divisor_ - 1) : value % divisor_;
  }
  constexpr std::uint64_t divisor() const noexcept { return divisor_; }

 private:
  std::uint64_t divisor_;  // at least 1
  bool is_power_;
};

}  // namespace onesum
