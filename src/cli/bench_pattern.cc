#include "cli/bench_pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <onesum/error.h>

namespace onesum::cli {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

constexpr std::size_t kPeriod = 8191;  // a prime: no power of two, such as a vector or a segment, divides it

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

template <class T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Integers in [-100, 100] or [0, 200]; floats of several magnitudes, so that the order of additions shows, or
// whole numbers that are so small that it does not.
template <class T>
T value_at(std::size_t replica, std::size_t element, Values values) {
  const std::uint64_t bits = mixed(replica * kPeriod + element);
  if constexpr (std::is_integral_v<T>) {
    const auto number = static_cast<int>(bits % 201);
    return static_cast<T>(std::is_signed_v<T> ? number - 100 : number);
  } else {
    const bool is_whole = values == Values::kWhole;
    const double fraction = (static_cast<double>(bits % 2001) - 1000) / 997;  // uses all bits of a mantissa
    const double number = is_whole ? static_cast<double>(bits % 3) - 1
                                   : std::ldexp(fraction, static_cast<int>((bits >> 32) % 8) - 3);
    const double other = is_whole ? static_cast<double>((bits >> 40) % 3) - 1
                                  : static_cast<double>((bits >> 40) % 201) / 99 - 1;
    if constexpr (kIsComplex<T>) {
      return T(static_cast<typename T::value_type>(number), static_cast<typename T::value_type>(other));
    } else if constexpr (kIsSmallFloat<T>) {
      return T::from_float(static_cast<float>(number));
    } else {
      return static_cast<T>(number);
    }
  }
}

// The type in which a sum is formed.
template <class T, bool kMean>
auto zero_sum() {
  if constexpr (kIsSmallFloat<T>) {
    return float{};
  } else if constexpr (!std::is_integral_v<T>) {
    return T{};
  } else if constexpr (!kMean) {
    return std::make_unsigned_t<T>{};  // wraps
  } else if constexpr (sizeof(T) < 8) {
    return std::int64_t{};
  } else {
    return std::conditional_t<std::is_signed_v<T>, Int128, UInt128>{};
  }
}
template <class T, bool kMean>
using SumOf = decltype(zero_sum<T, kMean>());

// The type of the result.
template <class T, bool kMean>
using ResultOf =
    std::conditional_t<kMean && std::is_integral_v<T>, std::conditional_t<(sizeof(T) < 4), float, double>, T>;

template <class T, bool kMean>
SumOf<T, kMean> widened(T value) {
  if constexpr (kIsSmallFloat<T>) {
    return value.to_float();
  } else {
    return static_cast<SumOf<T, kMean>>(value);
  }
}

// The binary tree over replicas that splits n at the largest power of two below n.
template <class T, bool kMean>
SumOf<T, kMean> tree(std::size_t element, std::size_t first, std::size_t n, Values values) {
  if (n == 1) return widened<T, kMean>(value_at<T>(first, element, values));
  const std::size_t left = std::bit_floor(n - 1);
  return static_cast<SumOf<T, kMean>>(tree<T, kMean>(element, first, left, values) +
                                      tree<T, kMean>(element, first + left, n - left, values));
}

template <class T, bool kMean>
ResultOf<T, kMean> result_at(std::size_t element, std::size_t replicas, Values values) {
  using Result = ResultOf<T, kMean>;
  auto sum = tree<T, kMean>(element, 0, replicas, values);
  if constexpr (!kMean) {
    if constexpr (kIsSmallFloat<T>) {
      return T::from_float(sum);
    } else {
      return static_cast<T>(sum);
    }
  } else if constexpr (kIsSmallFloat<T>) {
    return T::from_float(sum / static_cast<float>(replicas));
  } else if constexpr (kIsComplex<T>) {
    return sum / static_cast<typename T::value_type>(replicas);
  } else {
    return static_cast<Result>(sum) / static_cast<Result>(replicas);
  }
}

struct Tables {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::byte> expected;
};

// The elements of a period, each as `at` gives it.
template <class At>
std::vector<std::byte> table_of(At at) {
  using Element = decltype(at(std::size_t{}));
  std::vector<std::byte> table(kPeriod * sizeof(Element));
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const Element value = at(i);
    std::memcpy(table.data() + i * sizeof(Element), &value, sizeof(Element));
  }
  return table;
}

template <class T>
Tables make_tables(ReduceOp op, std::size_t replicas, Values values) {
  Tables tables;
  for (std::size_t r = 0; r < replicas; ++r) {
    tables.inputs.push_back(table_of([&](std::size_t i) { return value_at<T>(r, i, values); }));
  }
  tables.expected = op == ReduceOp::kMean
                        ? table_of([&](std::size_t i) { return result_at<T, true>(i, replicas, values); })
                        : table_of([&](std::size_t i) { return result_at<T, false>(i, replicas, values); });
  return tables;
}

Tables make_tables(ReduceOp op, DType dtype, std::size_t replicas, Values values) {
  switch (dtype) {
    case DType::kUInt8:
      return make_tables<std::uint8_t>(op, replicas, values);
    case DType::kInt8:
      return make_tables<std::int8_t>(op, replicas, values);
    case DType::kUInt16:
      return make_tables<std::uint16_t>(op, replicas, values);
    case DType::kInt16:
      return make_tables<std::int16_t>(op, replicas, values);
    case DType::kUInt32:
      return make_tables<std::uint32_t>(op, replicas, values);
    case DType::kInt32:
      return make_tables<std::int32_t>(op, replicas, values);
    case DType::kUInt64:
      return make_tables<std::uint64_t>(op, replicas, values);
    case DType::kInt64:
      return make_tables<std::int64_t>(op, replicas, values);
    case DType::kFloat16:
      return make_tables<Float16>(op, replicas, values);
    case DType::kBFloat16:
      return make_tables<BFloat16>(op, replicas, values);
    case DType::kFloat32:
      return make_tables<float>(op, replicas, values);
    case DType::kFloat64:
      return make_tables<double>(op, replicas, values);
    case DType::kComplex64:
      return make_tables<std::complex<float>>(op, replicas, values);
    case DType::kComplex128:
      return make_tables<std::complex<double>>(op, replicas, values);
    case DType::kBool:
      break;  // result_dtype() has refused it
  }
  throw Error(ErrorCode::kInternal, "bench: no pattern for type " + std::string(to_string(dtype)));
}

std::string hex(std::span<const std::byte> element) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (std::size_t i = element.size(); i-- > 0;) {  // the highest byte first
    const auto byte = std::to_integer<unsigned>(element[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Pattern::Pattern(ReduceOp op, DType dtype, std::size_t replicas, Values values)
    : input_bytes_(size_of(dtype)), result_bytes_(size_of(result_dtype(op, dtype))) {
  Tables tables = make_tables(op, dtype, replicas, values);
  inputs_ = std::move(tables.inputs);
  expected_ = std::move(tables.expected);
}

void Pattern::fill(std::span<std::byte> memory, std::size_t replica, std::size_t phase) const {
  const std::vector<std::byte>& table = inputs_[replica];
  std::size_t from = phase % kPeriod * input_bytes_;
  while (!memory.empty()) {
    const std::size_t count = std::min(memory.size(), table.size() - from);
    std::memcpy(memory.data(), table.data() + from, count);
    memory = memory.subspan(count);
    from = 0;
  }
}

Difference Pattern::difference(std::span<const std::byte> result, std::size_t phase) const {
  Difference difference;
  std::size_t from = phase % kPeriod * result_bytes_;
  for (std::size_t done = 0; done < result.size(); from = 0) {
    const std::size_t count = std::min(result.size() - done, expected_.size() - from);
    const std::span<const std::byte> expected = std::span(expected_).subspan(from, count);
    const std::span<const std::byte> found = result.subspan(done, count);
    if (std::memcmp(expected.data(), found.data(), count) != 0) {
      add_differences(found, expected, done / result_bytes_, difference);
    }
    done += count;
  }
  return difference;
}

void Pattern::add_differences(std::span<const std::byte> found, std::span<const std::byte> expected,
                              std::size_t first_element, Difference& to) const {
  for (std::size_t at = 0; at < found.size(); at += result_bytes_) {
    const std::span<const std::byte> is = found.subspan(at, result_bytes_);
    const std::span<const std::byte> should_be = expected.subspan(at, result_bytes_);
    if (std::ranges::equal(is, should_be)) continue;
    if (++to.elements > 1) continue;
    to.first = "element " + std::to_string(first_element + at / result_bytes_) + " is " + hex(is) +
               ", expected " + hex(should_be);
  }
}

}  // namespace onesum::cli
