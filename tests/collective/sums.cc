#include "collective/sums.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <type_traits>

namespace onesum::collective {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// Of values of T: in what they are added for a SUM and for a MEAN, and the type of a MEAN.
template <class T>
struct Types {
  using Sum = T;
  using Mean = T;
  using MeanResult = T;
};
template <>
struct Types<Float16> {
  using Sum = float;
  using Mean = float;
  using MeanResult = Float16;
};
template <>
struct Types<BFloat16> {
  using Sum = float;
  using Mean = float;
  using MeanResult = BFloat16;
};
template <>
struct Types<std::int8_t> {
  using Sum = std::int8_t;
  using Mean = std::int64_t;
  using MeanResult = float;
};
template <>
struct Types<std::int64_t> {
  using Sum = std::uint64_t;  // wraps
  using Mean = Int128;
  using MeanResult = double;
};
template <>
struct Types<std::uint64_t> {
  using Sum = std::uint64_t;
  using Mean = UInt128;
  using MeanResult = double;
};

template <class T>
constexpr bool kIs16Bit = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool kIsInteger =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;

template <class T>
double nasty(std::mt19937_64& random) {
  const double limit = std::is_same_v<T, Float16> ? 2048.0 : 1e8;
  const int spread = std::is_same_v<T, Float16> ? 10 : 60;
  switch (random() % 8) {
    case 0:
      return limit;
    case 1:
      return -limit;
    case 2:
      return 1.0;
    case 3:
      return std::is_same_v<T, Float16> ? 6e-8 : 1e-42;
    case 4:
      return -0.0;
    case 5:
      return 1.0 + static_cast<double>(random() % 1024) / 1024;
    default: {
      const double sign = random() % 2 == 0 ? 1.0 : -1.0;
      const auto exponent = static_cast<int>(random() % static_cast<unsigned>(spread)) - spread / 2;
      return sign * std::ldexp(1.0 + static_cast<double>(random() % 4096) / 4096, exponent);
    }
  }
}

template <class T>
T make(std::mt19937_64& random) {
  if constexpr (kIs16Bit<T>) {
    return T::from_float(static_cast<float>(nasty<T>(random)));
  } else if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    const auto real = static_cast<Part>(nasty<Part>(random));
    return T(real, static_cast<Part>(nasty<Part>(random)));
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(random());
  } else {
    return static_cast<T>(nasty<T>(random));
  }
}

template <class A, class T>
A widened(const T& value) {
  if constexpr (kIs16Bit<T>) {
    return value.to_float();
  } else {
    return static_cast<A>(value);
  }
}

template <class A>
A tree_sum(const std::vector<A>& values, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return values[begin];
  std::size_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const A first = tree_sum(values, begin, begin + left);
  return static_cast<A>(first + tree_sum(values, begin + left, end));
}

template <class R, class A>
R finished(const A& sum, std::size_t divisor) {
  if constexpr (kIs16Bit<R>) {
    return R::from_float(sum / static_cast<float>(divisor));
  } else if constexpr (kIsComplex<R>) {
    using Part = typename R::value_type;
    return R(sum.real() / static_cast<Part>(divisor), sum.imag() / static_cast<Part>(divisor));
  } else if constexpr (kIsInteger<R>) {
    return static_cast<R>(sum);  // SUM
  } else {
    return static_cast<R>(sum) / static_cast<R>(divisor);
  }
}

template <class T, class A, class R>
plan::Bytes summed(const std::vector<plan::Bytes>& replicas, std::size_t divisor) {
  plan::Bytes result(replicas.front().size() / sizeof(T) * sizeof(R));
  for (std::size_t i = 0; i < replicas.front().size() / sizeof(T); ++i) {
    std::vector<A> values;
    for (const plan::Bytes& replica : replicas) {
      T value;
      std::memcpy(&value, replica.data() + i * sizeof value, sizeof value);
      values.push_back(widened<A>(value));
    }
    const R element = finished<R>(tree_sum(values, 0, values.size()), divisor);
    std::memcpy(result.data() + i * sizeof element, &element, sizeof element);
  }
  return result;
}

template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16:
      return f(Float16{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(std::complex<float>{});
    case DType::kComplex128:
      return f(std::complex<double>{});
    case DType::kInt8:
      return f(std::int8_t{});
    case DType::kInt64:
      return f(std::int64_t{});
    case DType::kUInt64:
      return f(std::uint64_t{});
    default:
      return f(float{});
  }
}

}  // namespace

const std::vector<DType>& types_with_sums() {
  static const std::vector<DType> types = {DType::kFloat16, DType::kBFloat16,  DType::kFloat32,
                                           DType::kFloat64, DType::kComplex64, DType::kComplex128,
                                           DType::kInt8,    DType::kInt64,     DType::kUInt64};
  return types;
}

bool is_exact(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt64 || dtype == DType::kUInt64;
}

std::vector<plan::Bytes> nasty_replicas(DType dtype, std::size_t replicas, std::size_t elements,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<plan::Bytes> all(replicas, plan::Bytes(elements * size_of(dtype)));
  with_type(dtype, [&](auto type) {
    for (plan::Bytes& replica : all) {
      for (std::size_t i = 0; i < elements; ++i) {
        const auto value = make<decltype(type)>(random);
        std::memcpy(replica.data() + i * sizeof value, &value, sizeof value);
      }
    }
  });
  return all;
}

plan::Bytes canonical_result(ReduceOp op, DType dtype, const std::vector<plan::Bytes>& replicas) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    if (op == ReduceOp::kSum) return summed<T, typename Types<T>::Sum, T>(replicas, 1);
    return summed<T, typename Types<T>::Mean, typename Types<T>::MeanResult>(replicas, replicas.size());
  });
}

plan::Bytes bytes_of_floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> floats_of_bytes(const plan::Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace onesum::collective
