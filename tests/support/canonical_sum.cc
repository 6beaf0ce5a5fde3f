#include "support/canonical_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "support/with_type.h"

namespace onesum::testing {
namespace {

using Contents = std::vector<std::byte>;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// What sums are formed in; integers in more bits than a sum can fill, and cut to size in the end.
template <class T>
using Sum = std::conditional_t<
    is_half<T>, float,
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, Int128, UInt128>, T>>;

template <class T>
Sum<T> element_at(const Contents& contents, std::size_t i) {
  T value;
  std::memcpy(&value, contents.data() + i * sizeof(T), sizeof(T));
  if constexpr (is_half<T>) {
    return value.to_float();
  } else {
    return static_cast<Sum<T>>(value);
  }
}

template <class S>
S product_of(S a, S b) {
  if constexpr (is_complex<S>) {
    return S(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else if constexpr (std::is_floating_point_v<S>) {
    return a * b;
  } else {
    return static_cast<S>(static_cast<UInt128>(a) * static_cast<UInt128>(b));
  }
}

template <class S>
S extreme_of(S a, S b, bool is_min) {
  if constexpr (std::is_floating_point_v<S>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == 0 && b == 0) return std::signbit(a) == is_min ? a : b;
  }
  return is_min ? std::min(a, b) : std::max(a, b);
}

template <class S>
S combined(ReduceOp op, S a, S b) {
  if (op == ReduceOp::kProduct) return product_of(a, b);
  if constexpr (!is_complex<S>) {
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) return extreme_of(a, b, op == ReduceOp::kMin);
  }
  if constexpr (!is_complex<S> && !std::is_floating_point_v<S>) {
    if (op == ReduceOp::kBitAnd) return a & b;
    if (op == ReduceOp::kBitOr) return a | b;
    if (op == ReduceOp::kBitXor) return a ^ b;
  }
  return a + b;
}

// Element i of replicas [begin, end) combined.
template <class T>
Sum<T> tree_of(ReduceOp op, const std::vector<Contents>& replicas, std::size_t begin, std::size_t end,
               std::size_t i) {
  if (end - begin == 1) return element_at<T>(replicas[begin], i);
  const std::size_t middle = begin + std::bit_floor(end - begin - 1);
  return combined(op, tree_of<T>(op, replicas, begin, middle, i), tree_of<T>(op, replicas, middle, end, i));
}

template <class T>
T narrowed(Sum<T> sum) {
  if constexpr (is_half<T>) {
    return T::from_float(sum);
  } else {
    return static_cast<T>(sum);
  }
}

template <class T>
auto mean_of(Sum<T> sum, std::size_t n) {
  if constexpr (std::is_integral_v<T>) {
    using Result = std::conditional_t<(sizeof(T) < 4), float, double>;
    return static_cast<Result>(sum) / static_cast<Result>(n);
  } else if constexpr (is_half<T>) {
    return T::from_float(sum / static_cast<float>(n));
  } else if constexpr (std::is_floating_point_v<T>) {
    return sum / static_cast<T>(n);
  } else {
    const auto divisor = static_cast<typename T::value_type>(n);
    return T(sum.real() / divisor, sum.imag() / divisor);
  }
}

template <class T>
Contents result_of(ReduceOp op, const std::vector<Contents>& replicas) {
  Contents result;
  const auto append = [&](const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    result.insert(result.end(), bytes.begin(), bytes.end());
  };
  for (std::size_t i = 0; i < replicas.front().size() / sizeof(T); ++i) {
    const Sum<T> sum = tree_of<T>(op, replicas, 0, replicas.size(), i);
    if (op == ReduceOp::kMean) {
      append(mean_of<T>(sum, replicas.size()));
    } else {
      append(narrowed<T>(sum));
    }
  }
  return result;
}

}  // namespace

std::vector<std::byte> canonical_result(ReduceOp op, DType dtype,
                                        const std::vector<std::vector<std::byte>>& replicas) {
  if (dtype == DType::kBool) return result_of<std::uint8_t>(op, replicas);  // of 0 and 1
  return with_type(dtype, [&](auto zero) { return result_of<decltype(zero)>(op, replicas); });
}

}  // namespace onesum::testing
