#include "engine/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace onesum::engine::testing {
namespace {

using E = Element;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

bool is_complex(E element) { return element == E::kComplex64 || element == E::kComplex128; }
bool is_real_float(E e) {
  return e == E::kFloat16 || e == E::kBFloat16 || e == E::kFloat32 || e == E::kFloat64;
}

E part_of(E element) {
  return element == E::kComplex64 ? E::kFloat32 : element == E::kComplex128 ? E::kFloat64 : element;
}

bool converts(E from, E to) {
  static const std::set<std::pair<E, E>> kConversions = {
      {E::kFloat16, E::kFloat32},  {E::kBFloat16, E::kFloat32}, {E::kFloat32, E::kFloat16},
      {E::kFloat32, E::kBFloat16}, {E::kUInt8, E::kInt64},      {E::kInt8, E::kInt64},
      {E::kUInt16, E::kInt64},     {E::kInt16, E::kInt64},      {E::kUInt32, E::kInt64},
      {E::kInt32, E::kInt64},      {E::kUInt8, E::kUInt64},     {E::kUInt16, E::kUInt64},
      {E::kUInt32, E::kUInt64},    {E::kInt64, E::kInt128},     {E::kUInt64, E::kInt128},
      {E::kUInt64, E::kUInt128},   {E::kInt64, E::kFloat32},    {E::kUInt64, E::kFloat32},
      {E::kInt128, E::kFloat32},   {E::kUInt128, E::kFloat32},  {E::kInt64, E::kFloat64},
      {E::kUInt64, E::kFloat64},   {E::kInt128, E::kFloat64},   {E::kUInt128, E::kFloat64}};
  return from == to || kConversions.contains({from, to});
}

// Calls f with a value of the type that `element` has in memory (16-bit floats: their bits).
template <class F>
auto with_type(E element, F f) {
  switch (element) {
    case E::kBool:
    case E::kUInt8:
      return f(std::uint8_t{});
    case E::kInt8:
      return f(std::int8_t{});
    case E::kUInt16:
    case E::kFloat16:
    case E::kBFloat16:
      return f(std::uint16_t{});
    case E::kInt16:
      return f(std::int16_t{});
    case E::kUInt32:
      return f(std::uint32_t{});
    case E::kInt32:
      return f(std::int32_t{});
    case E::kUInt64:
      return f(std::uint64_t{});
    case E::kInt64:
      return f(std::int64_t{});
    case E::kFloat32:
    case E::kComplex64:
      return f(float{});
    case E::kFloat64:
    case E::kComplex128:
      return f(double{});
    case E::kInt128:
      return f(Int128{});
    case E::kUInt128:
      return f(UInt128{});
  }
  std::abort();
}

template <class T>
T element_at(const Bytes& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void set_element(Bytes& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

template <class Accumulator>
Accumulator load(E element, const Bytes& bytes, std::size_t index) {
  if constexpr (std::is_floating_point_v<Accumulator>) {
    if (element == E::kFloat16) return float_of_half(element_at<std::uint16_t>(bytes, index));
    if (element == E::kBFloat16) return float_of_bfloat(element_at<std::uint16_t>(bytes, index));
  }
  return with_type(
      element, [&](auto type) { return static_cast<Accumulator>(element_at<decltype(type)>(bytes, index)); });
}

template <class T>
T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else if constexpr (sizeof(T) == 16) {
    return static_cast<T>(static_cast<UInt128>(a) + static_cast<UInt128>(b));
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}

template <class Accumulator>
void store(const ReduceForm& form, Bytes& to, std::size_t index, Accumulator sum) {
  const bool divides = form.divisor != 1;
  if constexpr (std::is_floating_point_v<Accumulator>) {
    if (divides) sum = sum / static_cast<Accumulator>(form.divisor);
    if (form.output == E::kFloat16) return set_element(to, index, half_of_float(static_cast<float>(sum)));
    if (form.output == E::kBFloat16) return set_element(to, index, bfloat_of_float(static_cast<float>(sum)));
    return set_element(to, index, sum);
  } else {
    with_type(form.output, [&](auto type) {
      auto value = static_cast<decltype(type)>(sum);
      if constexpr (std::is_floating_point_v<decltype(type)>) {
        if (divides) value = value / static_cast<decltype(type)>(form.divisor);
      }
      set_element(to, index, value);
    });
  }
}

template <class T>
bool same(const Bytes& a, const Bytes& b, std::size_t index) {
  return std::memcmp(a.data() + index * sizeof(T), b.data() + index * sizeof(T), sizeof(T)) == 0;
}

std::string hex(const Bytes& bytes, std::size_t begin, std::size_t size) {
  static const char* const kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (std::size_t i = size; i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(bytes[begin + i]);
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

bool is_nan_at(E element, const Bytes& bytes, std::size_t index) {
  switch (element) {
    case E::kFloat16:
      return (element_at<std::uint16_t>(bytes, index) & 0x7FFF) > 0x7C00;
    case E::kBFloat16:
      return (element_at<std::uint16_t>(bytes, index) & 0x7FFF) > 0x7F80;
    case E::kFloat32:
      return std::isnan(element_at<float>(bytes, index));
    case E::kFloat64:
      return std::isnan(element_at<double>(bytes, index));
    default:
      return false;
  }
}

// The format with `mantissa` explicit bits and exponents from `least` (of normal numbers) on, `bias` above
// zero.
std::uint16_t narrow(float value, int mantissa, int least, std::uint16_t infinity) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity + (1 << (mantissa - 1)));
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(value) || magnitude == 0)
    return static_cast<std::uint16_t>(sign | (magnitude == 0 ? 0 : infinity));
  const int exponent = std::max(std::ilogb(magnitude), least);
  const double steps = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));  // to nearest even
  // A carry out of the mantissa lands in the exponent, as it should.
  const double bits = std::ldexp(exponent - least + 1, mantissa) + steps - std::ldexp(1, mantissa);
  return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::min<double>(bits, infinity)));
}

}  // namespace

float float_of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  float magnitude = 0;
  if (exponent == 0x1F) {
    magnitude =
        fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    magnitude = std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 1024),
                           std::max(exponent, 1) - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
std::uint16_t half_of_float(float value) { return narrow(value, 10, -14, 0x7C00); }
float float_of_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
std::uint16_t bfloat_of_float(float value) { return narrow(value, 7, -126, 0x7F80); }

bool is_defined(const ReduceForm& form) {
  if (form.combine != Combine::kSum && form.divisor != 1) return false;
  if (form.merges.size() == 1 && form.input == form.output && form.divisor == 1) return true;
  if (form.combine != Combine::kSum && form.merges.size() > 1) return is_defined_operation(form);
  if (form.input == E::kBool || form.accumulator == E::kFloat16 || form.accumulator == E::kBFloat16)
    return false;
  if (form.divisor != 1 && !is_real_float(part_of(form.output))) return false;
  if (is_complex(form.input) || is_complex(form.accumulator) || is_complex(form.output)) {
    return form.input == form.accumulator && form.accumulator == form.output;
  }
  return converts(form.input, form.accumulator) && converts(form.accumulator, form.output);
}

Bytes reference_reduce(const ReduceForm& form, std::span<const Bytes> sources, std::size_t count) {
  if (form.merges.size() == 1 && form.input == form.output && form.divisor == 1) return sources[0];
  if (form.combine != Combine::kSum && form.merges.size() > 1) {
    return reference_operation(form, sources, count);
  }
  if (is_complex(form.input)) {
    ReduceForm parts = form;
    parts.input = part_of(form.input);
    parts.accumulator = part_of(form.accumulator);
    parts.output = part_of(form.output);
    return reference_reduce(parts, sources, 2 * count);
  }
  Bytes result(count * size_of(form.output));
  with_type(form.accumulator, [&](auto type) {
    using Accumulator = decltype(type);
    std::vector<Accumulator> stack;
    for (std::size_t index = 0; index < count; ++index) {
      stack.clear();
      for (std::size_t i = 0; i < sources.size(); ++i) {
        stack.push_back(load<Accumulator>(form.input, sources[i], index));
        for (int merge = 0; merge < form.merges[i]; ++merge) {
          const Accumulator right = stack.back();
          stack.pop_back();
          stack.back() = add(stack.back(), right);
        }
      }
      store(form, result, index, stack.back());
    }
  });
  return result;
}

std::string difference(E element, const Bytes& found, const Bytes& expected) {
  const E part = part_of(element);
  const std::size_t size = size_of(part);
  if (found.size() != expected.size()) return "sizes differ";
  if (found.empty() || std::memcmp(found.data(), expected.data(), found.size()) == 0) return {};
  for (std::size_t i = 0; i < found.size() / size; ++i) {
    if (std::memcmp(found.data() + i * size, expected.data() + i * size, size) == 0) continue;
    if (is_nan_at(part, found, i) && is_nan_at(part, expected, i)) continue;
    return std::string(to_string(part)) + " " + std::to_string(i) + " is " + hex(found, i * size, size) +
           ", not " + hex(expected, i * size, size);
  }
  return {};
}

Bytes random_elements(E element, std::size_t count, std::mt19937& random) {
  const E part = part_of(element);
  Bytes bytes(count * size_of(element));
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    const auto bits = static_cast<std::uint32_t>(random());
    std::memcpy(bytes.data() + i, &bits, std::min<std::size_t>(4, bytes.size() - i));
  }
  if (part == E::kBool) {
    for (std::byte& byte : bytes) byte &= std::byte{1};
  }
  if (!is_real_float(part)) return bytes;
  // Random bits are mostly numbers too far apart to be added; most become numbers near 1.
  const std::size_t parts = bytes.size() / size_of(part);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const std::uint32_t dice = bits % 16;
    if (dice == 0) continue;
    static constexpr float kSpecial[] = {0.0F, -0.0F, 1e-45F, -3e-41F, 6e-8F, 65504.0F, 3.4e38F, -3.4e38F};
    static constexpr double kScale[] = {0x1p-35, 0x1p-34, 0x1p-33, 0x1p-32,
                                        0x1p-31, 0x1p-30, 0x1p-29, 0x1p-27};
    const double near = static_cast<double>(static_cast<std::int32_t>(bits)) * kScale[bits / 16 % 8];
    const double value = dice == 1 ? kSpecial[bits / 16 % 8] : near;
    if (part == E::kFloat16) set_element(bytes, i, half_of_float(static_cast<float>(value)));
    if (part == E::kBFloat16) set_element(bytes, i, bfloat_of_float(static_cast<float>(value)));
    if (part == E::kFloat32) set_element(bytes, i, static_cast<float>(value));
    if (part == E::kFloat64) set_element(bytes, i, value);
  }
  return bytes;
}

std::vector<std::uint8_t> canonical_tree(std::size_t sources) {
  if (sources == 1) return {0};
  const std::size_t left = std::bit_floor(sources - 1);
  std::vector<std::uint8_t> merges = canonical_tree(left);
  const std::vector<std::uint8_t> right = canonical_tree(sources - left);
  merges.insert(merges.end(), right.begin(), right.end());
  ++merges.back();
  return merges;
}

std::vector<std::uint8_t> random_tree(std::size_t sources, std::mt19937& random) {
  if (sources == 1) return {0};
  const std::size_t left = 1 + random() % (sources - 1);
  std::vector<std::uint8_t> merges = random_tree(left, random);
  const std::vector<std::uint8_t> right = random_tree(sources - left, random);
  merges.insert(merges.end(), right.begin(), right.end());
  ++merges.back();
  return merges;
}

}  // namespace onesum::engine::testing
