#include "plan/scalar.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class T>
constexpr bool kIsSmallFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool kIsInteger = !kIsSmallFloat<T> && !kIsFloat<T> && !kIsComplex<T> && !std::is_same_v<T, bool>;

// Calls f with a value of the C++ type of an element.
template <class F>
auto with_type(Element element, F&& f) {
  switch (element) {
    case Element::kBool:
      return f(bool{});
    case Element::kUInt8:
      return f(std::uint8_t{});
    case Element::kInt8:
      return f(std::int8_t{});
    case Element::kUInt16:
      return f(std::uint16_t{});
    case Element::kInt16:
      return f(std::int16_t{});
    case Element::kUInt32:
      return f(std::uint32_t{});
    case Element::kInt32:
      return f(std::int32_t{});
    case Element::kUInt64:
      return f(std::uint64_t{});
    case Element::kInt64:
      return f(std::int64_t{});
    case Element::kFloat16:
      return f(Float16{});
    case Element::kBFloat16:
      return f(BFloat16{});
    case Element::kFloat32:
      return f(float{});
    case Element::kFloat64:
      return f(double{});
    case Element::kComplex64:
      return f(std::complex<float>{});
    case Element::kComplex128:
      return f(std::complex<double>{});
    case Element::kInt128:
      return f(Int128{});
    case Element::kUInt128:
      break;
  }
  return f(UInt128{});
}

template <class To, class From>
To convert(const From& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsSmallFloat<From>) {
    return convert<To>(x.to_float());
  } else if constexpr (kIsSmallFloat<To>) {
    return To::from_float(convert<float>(x));
  } else if constexpr (kIsComplex<From> && kIsComplex<To>) {
    using Part = typename To::value_type;
    return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
  } else if constexpr (kIsComplex<To> && !std::is_same_v<From, bool>) {
    return To(convert<typename To::value_type>(x), 0);
  } else if constexpr (kIsComplex<From> || (kIsFloat<From> && !kIsFloat<To>) || std::is_same_v<To, bool> ||
                       std::is_same_v<From, bool>) {
    refuse("simulation: a conversion without meaning");
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
T add(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>) {
    refuse("simulation: bool has no sum");
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<UInt128>(a) + static_cast<UInt128>(b));  // wraps at the width of T
  } else if constexpr (kIsSmallFloat<T>) {
    return T::from_float(a.to_float() + b.to_float());
  } else {
    return a + b;
  }
}

template <class T>
T multiply(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<UInt128>(a) * static_cast<UInt128>(b));  // wraps at the width of T
  } else if constexpr (kIsSmallFloat<T>) {
    return T::from_float(a.to_float() * b.to_float());
  } else if constexpr (kIsComplex<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

// The smaller of two, the larger if `larger`.
template <class T>
T extreme(const T& a, const T& b, bool larger) {
  if constexpr (kIsComplex<T>) {
    refuse("simulation: complex numbers have no order");
  } else if constexpr (kIsSmallFloat<T>) {
    return T::from_float(extreme(a.to_float(), b.to_float(), larger));
  } else if constexpr (kIsFloat<T>) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) != larger ? a : b;  // zeros of different signs
    return (a < b) != larger ? a : b;
  } else {
    return (a < b) != larger ? a : b;
  }
}

template <class T>
T combine_bits(Combine combine, const T& a, const T& b) {
  if constexpr (kIsInteger<T> || std::is_same_v<T, bool>) {
    if (combine == Combine::kBitAnd) return static_cast<T>(a & b);
    if (combine == Combine::kBitOr) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  } else {
    refuse("simulation: only integers and bool have bits to combine");
  }
}

template <class T>
T combined(Combine combine, const T& a, const T& b) {
  switch (combine) {
    case Combine::kSum:
      return add(a, b);
    case Combine::kProduct:
      return multiply(a, b);
    case Combine::kMin:
    case Combine::kMax:
      return extreme(a, b, combine == Combine::kMax);
    default:
      return combine_bits(combine, a, b);
  }
}

template <class T>
T divide(const T& x, std::int64_t divisor) {
  if (divisor == 1) return x;
  if constexpr (std::is_same_v<T, bool>) {
    refuse("simulation: bool is not divided");
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(x / static_cast<T>(divisor));
  } else if constexpr (kIsSmallFloat<T>) {
    return T::from_float(x.to_float() / static_cast<float>(divisor));
  } else if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(x.real() / static_cast<Part>(divisor), x.imag() / static_cast<Part>(divisor));
  } else {
    return x / static_cast<T>(divisor);
  }
}

template <class A>
A load(const ScalarSource& source, std::size_t i) {
  return with_type(source.element, [&](auto value) {
    std::memcpy(&value, source.data + i * sizeof value, sizeof value);
    return convert<A>(value);
  });
}

template <class A>
void store(const ScalarDestination& destination, std::size_t i, const A& sum, std::int64_t divisor) {
  with_type(destination.element, [&](auto value) {
    using T = decltype(value);
    if constexpr (kIsInteger<A>) {
      value = divide(convert<T>(sum), divisor);
    } else {
      value = convert<T>(divide(sum, divisor));
    }
    std::memcpy(destination.data + i * sizeof value, &value, sizeof value);
  });
}

template <class A>
void reduce_in(const ScalarReduce& reduce) {
  std::vector<A> stack(reduce.sources.size());
  for (std::size_t i = 0; i < reduce.count; ++i) {
    std::size_t depth = 0;
    for (const ScalarSource& source : reduce.sources) {
      stack[depth++] = load<A>(source, i);
      for (std::uint8_t merge = 0; merge < source.merges; ++merge) {
        --depth;
        stack[depth - 1] = combined<A>(reduce.combine, stack[depth - 1], stack[depth]);
      }
    }
    for (const ScalarDestination& destination : reduce.destinations)
      store<A>(destination, i, stack[0], reduce.divisor);
  }
}

}  // namespace

void reduce_elements(const ScalarReduce& reduce) {
  with_type(reduce.accumulator, [&](auto zero) { reduce_in<decltype(zero)>(reduce); });
}

}  // namespace onesum::plan
