#include "support/bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "plan/simulate.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xc3};

using Random = std::mt19937_64;

// Moderate exponents and full mantissas: sums of a few of them round, and differently in another order.
double plain_number(Random& random) {
  const double mantissa = static_cast<double>(random() >> 11) * 0x1p-53 + 1.0;
  const int exponent = static_cast<int>(random() % 12) - 6;
  return std::ldexp((random() & 1) != 0 ? mantissa : -mantissa, exponent);
}

template <class Bits>
Bits wild_bits(Random& random, std::initializer_list<Bits> specials) {
  if (random() % 4 != 0) return static_cast<Bits>(random());
  return *std::next(specials.begin(), static_cast<std::ptrdiff_t>(random() % specials.size()));
}

std::uint16_t wild16(Random& random, std::uint16_t infinity) {
  const auto top = static_cast<std::uint16_t>(infinity - 1);
  return wild_bits<std::uint16_t>(
      random,
      {0, 0x8000, 1, 0x8001, infinity, static_cast<std::uint16_t>(infinity | 0x8000),
       static_cast<std::uint16_t>(infinity + 1), top, static_cast<std::uint16_t>(top | 0x8000), 0x0200});
}

std::uint32_t wild32(Random& random) {
  return wild_bits<std::uint32_t>(random, {0, 0x80000000U, 1, 0x80000001U, 0x7f800000U, 0xff800000U,
                                           0x7fc00000U, 0x7f7fffffU, 0xff7fffffU, 0x007fffffU, 0x00800000U});
}

std::uint64_t wild64(Random& random) {
  return wild_bits<std::uint64_t>(
      random, {0, 0x8000000000000000U, 1, 0x8000000000000001U, 0x7ff0000000000000U, 0xfff0000000000000U,
               0x7ff8000000000000U, 0x7fefffffffffffffU, 0xffefffffffffffffU, 0x000fffffffffffffU,
               0x0010000000000000U});
}

template <class T, class Make>
void write_all(std::span<std::byte> memory, const Make& make) {
  for (std::size_t at = 0; at + sizeof(T) <= memory.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(memory.data() + at, &value, sizeof(T));
  }
}

void fill_float32(std::span<std::byte> memory, Fill how, Random& random) {
  if (how == Fill::kWild) return write_all<std::uint32_t>(memory, [&] { return wild32(random); });
  write_all<float>(memory, [&] { return static_cast<float>(plain_number(random)); });
}

void fill_float64(std::span<std::byte> memory, Fill how, Random& random) {
  if (how == Fill::kWild) return write_all<std::uint64_t>(memory, [&] { return wild64(random); });
  write_all<double>(memory, [&] { return plain_number(random); });
}

template <class T>
bool is_nan_at(const std::byte* memory) {
  T value;
  std::memcpy(&value, memory, sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return std::isnan(value.to_float());
  }
}

struct Part {
  std::size_t bytes;  // what is compared at a time: both parts of a complex number by themselves
  bool (*is_nan)(const std::byte*);
};

Part part_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {2, is_nan_at<Float16>};
    case DType::kBFloat16:
      return {2, is_nan_at<BFloat16>};
    case DType::kFloat32:
    case DType::kComplex64:
      return {4, is_nan_at<float>};
    case DType::kFloat64:
    case DType::kComplex128:
      return {8, is_nan_at<double>};
    default:
      return {size_of(dtype), nullptr};
  }
}

std::string hex(const std::byte* memory, std::size_t bytes) {
  std::string text = "0x";
  for (std::size_t i = bytes; i-- > 0;) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(memory[i]) >> 4];
    text += kDigits[std::to_integer<unsigned>(memory[i]) & 15];
  }
  return text;
}

}  // namespace

void fill(std::span<std::byte> memory, DType dtype, Fill how, std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15U + 1);
  switch (dtype) {
    case DType::kFloat16:
      if (how == Fill::kWild) return write_all<std::uint16_t>(memory, [&] { return wild16(random, 0x7c00); });
      return write_all<Float16>(
          memory, [&] { return Float16::from_float(static_cast<float>(plain_number(random))); });
    case DType::kBFloat16:
      if (how == Fill::kWild) return write_all<std::uint16_t>(memory, [&] { return wild16(random, 0x7f80); });
      return write_all<BFloat16>(
          memory, [&] { return BFloat16::from_float(static_cast<float>(plain_number(random))); });
    case DType::kFloat32:
    case DType::kComplex64:
      return fill_float32(memory, how, random);
    case DType::kFloat64:
    case DType::kComplex128:
      return fill_float64(memory, how, random);
    case DType::kBool:
      return write_all<bool>(memory, [&] { return (random() & 1) != 0; });
    default:
      return write_all<std::uint8_t>(memory, [&] { return static_cast<std::uint8_t>(random() >> 7); });
  }
}

Tensor random_tensor(DType dtype, Shape shape, const Device& device, std::uint64_t seed, Fill how) {
  std::vector<std::byte> bytes(shape.elements() * size_of(dtype));
  fill(bytes, dtype, how, seed);
  return Tensor::borrow(bytes.data(), dtype, std::move(shape), "CPU:0").copied_to(device);
}

PerReplica random_value(DType dtype, const Shape& shape, const std::vector<std::string>& devices,
                        std::uint64_t seed, Fill how) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    tensors.push_back(random_tensor(dtype, shape, devices[i], seed * 131 + i, how));
  }
  return PerReplica(std::move(tensors));
}

::testing::AssertionResult same_bits(DType dtype, std::span<const std::byte> found,
                                     std::span<const std::byte> expected) {
  if (found.size() != expected.size()) {
    return ::testing::AssertionFailure() << found.size() << " bytes, expected " << expected.size();
  }
  if (found.empty() || std::memcmp(found.data(), expected.data(), found.size()) == 0) {
    return ::testing::AssertionSuccess();
  }
  const Part part = part_of(dtype);
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t at = 0; at < found.size(); at += part.bytes) {
    if (std::memcmp(&found[at], &expected[at], part.bytes) == 0) continue;
    if (part.is_nan != nullptr && part.is_nan(&found[at]) && part.is_nan(&expected[at])) continue;
    if (wrong++ == 0) first = at;
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << wrong << " of " << found.size() / part.bytes << " " << to_string(dtype)
         << " differ, the first at " << first / part.bytes << ": " << hex(&found[first], part.bytes)
         << ", expected " << hex(&expected[first], part.bytes);
}

::testing::AssertionResult same_bits(const Tensor& found, std::span<const std::byte> expected) {
  const Tensor here = on_host(found);
  return same_bits(here.dtype(), {static_cast<const std::byte*>(here.memory()), here.bytes()}, expected);
}

std::vector<std::byte> simulated(const CrossDeviceOps& ops, ReduceOp op, const PerReplica& value,
                                 const Destination& destination) {
  const Plan plan = ops.plan(op, one_pair(value, destination));
  plan::BytesOfPacks inputs(1);
  for (std::size_t r = 0; r < value.size(); ++r) inputs[0].push_back(bytes_of(value.tensor(r)));
  const plan::BytesOfPacks results = plan::simulate(plan.value(), {plan.pack_elements(), {}}, inputs);
  for (const plan::Bytes& result : results.at(0)) {
    EXPECT_EQ(result, results[0][0]) << "the simulated results of one plan differ";
  }
  return results[0].at(0);
}

::testing::AssertionResult all_hold(const DistributedValues& result, std::span<const std::byte> expected) {
  for (std::size_t d = 0; d < result.size(); ++d) {
    const ::testing::AssertionResult same = same_bits(result.tensor(d), expected);
    if (!same) return ::testing::AssertionFailure() << "result " << d << ": " << same.message();
  }
  return ::testing::AssertionSuccess();
}

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t offset)
    : begin_(0), bytes_(bytes), storage_(bytes + 2 * kGuardBytes + 64, kGuard) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuardBytes;
  begin_ = kGuardBytes + (64 - address % 64) % 64 % 64 + offset % 64;
}

bool GuardedMemory::is_intact() const {
  const auto guarded = [](std::byte byte) { return byte == kGuard; };
  const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return std::all_of(storage_.begin(), begin, guarded) &&
         std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), storage_.end(), guarded);
}

}  // namespace onesum::testing
