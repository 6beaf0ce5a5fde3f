// For tests: contents that make the order and the rounding of additions visible, and comparison of bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/cross_device_ops.h>

namespace onesum::testing {

enum class Fill : std::uint8_t {
  kPlain,  // finite numbers of many magnitudes, so that another order of additions gives other bits; any
           // integer
  kWild,   // any bits, with many infinities, NaNs, zeros of both signs, subnormals and extremes among them
};

void fill(std::span<std::byte> memory, DType dtype, Fill how, std::uint64_t seed);
Tensor random_tensor(DType dtype, Shape shape, const Device& device, std::uint64_t seed,
                     Fill how = Fill::kPlain);

// A replica on each device, filled differently.
PerReplica random_value(DType dtype, const Shape& shape, const std::vector<std::string>& devices,
                        std::uint64_t seed, Fill how = Fill::kPlain);

// Equal bits, but for the sign and payload of NaNs.
::testing::AssertionResult same_bits(DType dtype, std::span<const std::byte> found,
                                     std::span<const std::byte> expected);
::testing::AssertionResult same_bits(const Tensor& found, std::span<const std::byte> expected);

// What every destination must hold, by the numeric simulation of the plan of this pair alone. Dense values.
std::vector<std::byte> simulated(const CrossDeviceOps& ops, ReduceOp op, const PerReplica& value,
                                 const Destination& destination);

// Every component of `result` holds `expected`.
::testing::AssertionResult all_hold(const DistributedValues& result, std::span<const std::byte> expected);

// Memory with any offset from alignment, between guards that must not be written.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, std::size_t offset);
  std::byte* data() { return storage_.data() + begin_; }
  std::span<std::byte> span() { return {data(), bytes_}; }
  bool is_intact() const;

 private:
  std::size_t begin_;
  std::size_t bytes_;
  std::vector<std::byte> storage_;
};

}  // namespace onesum::testing
