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

// What is reduced, and how.
struct Setting {
  ReduceOp op = ReduceOp::kSum;
  Values values = Values::kAny;
};

// Integers in [-100, 100] or [0, 200]; odd ones for products, which would soon be 0 otherwise, and all bits
// for what only chooses among them.
template <class T>
T integer_at(std::uint64_t bits, ReduceOp op) {
  if constexpr (std::is_same_v<T, bool>) {
    return bits % 2 != 0;
  } else {
    if (op != ReduceOp::kSum && op != ReduceOp::kMean && op != ReduceOp::kProduct)
      return static_cast<T>(bits);
    const auto number = static_cast<int>(bits % 201) - (std::is_signed_v<T> ? 100 : 0);
    return static_cast<T>(op == ReduceOp::kProduct ? number | 1 : number);
  }
}

// Real and imaginary part of floats of several magnitudes, so that the order of additions shows, or whole
// numbers that are so small that it does not. Those of products are such that no product has a zero part,
// whose sign would show the order.
struct Parts {
  double real, imaginary;
};
Parts parts_at(std::uint64_t bits, const Setting& setting) {
  const auto third = static_cast<int>(bits % 3) - 1;
  if (setting.values == Values::kAny) {
    const double fraction = (static_cast<double>(bits % 2001) - 1000) / 997;  // uses all bits of a mantissa
    return {std::ldexp(fraction, static_cast<int>((bits >> 32) % 8) - 3),
            static_cast<double>((bits >> 40) % 201) / 99 - 1};
  }
  if (setting.op == ReduceOp::kProduct) return {third <= 0 ? 2.0 : -2.0, third <= 0 ? 1.0 : -1.0};
  return {static_cast<double>(third), static_cast<double>((bits >> 40) % 3) - 1};
}

template <class T>
T value_at(std::size_t replica, std::size_t element, const Setting& setting) {
  const std::uint64_t bits = mixed(replica * kPeriod + element);
  if constexpr (std::is_integral_v<T>) {
    return integer_at<T>(bits, setting.op);
  } else {
    const Parts parts = parts_at(bits, setting);
    if constexpr (kIsComplex<T>) {
      using Part = typename T::value_type;
      return T(static_cast<Part>(parts.real), static_cast<Part>(parts.imaginary));
    } else if constexpr (kIsSmallFloat<T>) {
      return T::from_float(static_cast<float>(parts.real));
    } else {
      return static_cast<T>(parts.real);
    }
  }
}

// The type in which a sum is formed.
template <class T, bool kMean>
auto zero_sum() {
  if constexpr (kIsSmallFloat<T>) {
    return float{};
  } else if constexpr (!std::is_integral_v<T> || !kMean) {
    return T{};
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

// Integers wrap, in 128 bits and so in their own.
template <class T>
T added(T a, T b) {
  if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<UInt128>(a) + static_cast<UInt128>(b));
  }
}

template <class T>
T multiplied(T a, T b) {
  if constexpr (kIsComplex<T>) {
    const auto real = a.real() * b.real() - a.imag() * b.imag();
    return T(real, a.imag() * b.real() + a.real() * b.imag());
  } else if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<UInt128>(a) * static_cast<UInt128>(b));
  }
}

// No pattern has a NaN, or zeros of both signs.
template <class T>
T chosen(ReduceOp op, T a, T b) {
  if constexpr (!kIsComplex<T>) {
    if (op == ReduceOp::kMin) return std::min(a, b);
    if (op == ReduceOp::kMax) return std::max(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::kBitAnd) return static_cast<T>(a & b);
    if (op == ReduceOp::kBitOr) return static_cast<T>(a | b);
    if (op == ReduceOp::kBitXor) return static_cast<T>(a ^ b);
  }
  throw Error(ErrorCode::kInternal, "bench: no pattern for this operation");  // result_dtype() refuses it
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return added(a, b);
  return op == ReduceOp::kProduct ? multiplied(a, b) : chosen(op, a, b);
}

// The binary tree over replicas that splits n at the largest power of two below n.
template <class T, bool kMean>
SumOf<T, kMean> tree(std::size_t element, std::size_t first, std::size_t n, const Setting& setting) {
  if (n == 1) return widened<T, kMean>(value_at<T>(first, element, setting));
  const std::size_t left = std::bit_floor(n - 1);
  return combined(setting.op, tree<T, kMean>(element, first, left, setting),
                  tree<T, kMean>(element, first + left, n - left, setting));
}

template <class T, bool kMean>
ResultOf<T, kMean> result_at(std::size_t element, std::size_t replicas, const Setting& setting) {
  using Result = ResultOf<T, kMean>;
  auto sum = tree<T, kMean>(element, 0, replicas, setting);
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
Tables make_tables(std::size_t replicas, const Setting& setting) {
  Tables tables;
  for (std::size_t r = 0; r < replicas; ++r) {
    tables.inputs.push_back(table_of([&](std::size_t i) { return value_at<T>(r, i, setting); }));
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (setting.op == ReduceOp::kMean) {
      tables.expected = table_of([&](std::size_t i) { return result_at<T, true>(i, replicas, setting); });
      return tables;
    }
  }
  tables.expected = table_of([&](std::size_t i) { return result_at<T, false>(i, replicas, setting); });
  return tables;
}

Tables make_tables(DType dtype, std::size_t replicas, const Setting& setting) {
  switch (dtype) {
    case DType::kUInt8:
      return make_tables<std::uint8_t>(replicas, setting);
    case DType::kInt8:
      return make_tables<std::int8_t>(replicas, setting);
    case DType::kUInt16:
      return make_tables<std::uint16_t>(replicas, setting);
    case DType::kInt16:
      return make_tables<std::int16_t>(replicas, setting);
    case DType::kUInt32:
      return make_tables<std::uint32_t>(replicas, setting);
    case DType::kInt32:
      return make_tables<std::int32_t>(replicas, setting);
    case DType::kUInt64:
      return make_tables<std::uint64_t>(replicas, setting);
    case DType::kInt64:
      return make_tables<std::int64_t>(replicas, setting);
    case DType::kFloat16:
      return make_tables<Float16>(replicas, setting);
    case DType::kBFloat16:
      return make_tables<BFloat16>(replicas, setting);
    case DType::kFloat32:
      return make_tables<float>(replicas, setting);
    case DType::kFloat64:
      return make_tables<double>(replicas, setting);
    case DType::kComplex64:
      return make_tables<std::complex<float>>(replicas, setting);
    case DType::kComplex128:
      return make_tables<std::complex<double>>(replicas, setting);
    case DType::kBool:
      return make_tables<bool>(replicas, setting);
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

// Where a run of elements lies in a result.
struct Run {
  std::size_t element_bytes = 0;
  std::size_t first = 0;
};

void add_differences(std::span<const std::byte> found, std::span<const std::byte> expected, const Run& run,
                     Difference& to) {
  for (std::size_t at = 0; at < found.size(); at += run.element_bytes) {
    const std::span<const std::byte> is = found.subspan(at, run.element_bytes);
    const std::span<const std::byte> should_be = expected.subspan(at, run.element_bytes);
    if (std::ranges::equal(is, should_be)) continue;
    if (++to.elements > 1) continue;
    to.first = "element " + std::to_string(run.first + at / run.element_bytes) + " is " + hex(is) +
               ", expected " + hex(should_be);
  }
}

}  // namespace

Pattern::Pattern(ReduceOp op, DType dtype, std::size_t replicas, Values values)
    : input_bytes_(size_of(dtype)), result_bytes_(size_of(result_dtype(op, dtype))) {
  Tables tables = make_tables(dtype, replicas, {op, values});
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
  return difference(result, expected_, result_bytes_, phase);
}

Difference Pattern::difference_from(std::optional<std::size_t> replica, std::span<const std::byte> result,
                                    std::size_t phase) const {
  return replica ? difference(result, inputs_[*replica], input_bytes_, phase) : difference(result, phase);
}

Difference Pattern::difference(std::span<const std::byte> result, std::span<const std::byte> period,
                               std::size_t element_bytes, std::size_t phase) {
  Difference difference;
  std::size_t from = phase % kPeriod * element_bytes;
  for (std::size_t done = 0; done < result.size(); from = 0) {
    const std::size_t count = std::min(result.size() - done, period.size() - from);
    const std::span<const std::byte> expected = period.subspan(from, count);
    const std::span<const std::byte> found = result.subspan(done, count);
    if (std::memcmp(expected.data(), found.data(), count) != 0)
      add_differences(found, expected, {element_bytes, done / element_bytes}, difference);
    done += count;
  }
  return difference;
}

}  // namespace onesum::cli
