// The reference of products, minima, maxima and operations on bits: on whole numbers of 64 bits, on doubles
// and on pairs of them, by other means than the kernels'.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "engine/reference.h"

namespace onesum::engine::testing {
namespace {

using E = Element;

bool is_complex(E element) { return element == E::kComplex64 || element == E::kComplex128; }
bool is_whole(E element) { return element <= E::kInt64; }
bool is_signed(E element) {
  return element == E::kInt8 || element == E::kInt16 || element == E::kInt32 || element == E::kInt64;
}
bool is_single(E element) {
  return element == E::kFloat16 || element == E::kBFloat16 || element == E::kFloat32;
}

template <class T>
T read(const Bytes& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}
template <class T>
void write(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Sources pushed and combined in postfix.
template <class T, class Load, class Merge>
T walk(const ReduceForm& form, Load load, Merge merge) {
  std::vector<T> stack;
  for (std::size_t i = 0; i < form.merges.size(); ++i) {
    stack.push_back(load(i));
    for (int left = form.merges[i]; left > 0; --left) {
      const T right = stack.back();
      stack.pop_back();
      stack.back() = merge(stack.back(), right);
    }
  }
  return stack.back();
}

// Whole numbers as 64 bits, of signed types with their sign in all the upper ones: what is cut off in the end
// has no influence on what is kept.
std::uint64_t load_whole(E element, const Bytes& bytes, std::size_t index) {
  const std::size_t size = size_of(element);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
  return is_signed(element) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused)
                            : bits;
}

std::uint64_t merge_whole(const ReduceForm& form, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t flip = is_signed(form.input) ? std::uint64_t{1} << 63 : 0;
  switch (form.combine) {
    case Combine::kProduct:
      return a * b;
    case Combine::kMin:
      return (a ^ flip) < (b ^ flip) ? a : b;
    case Combine::kMax:
      return (a ^ flip) > (b ^ flip) ? a : b;
    case Combine::kBitAnd:
      return ~(~a | ~b);
    case Combine::kBitOr:
      return ~(~a & ~b);
    default:
      return (a | b) - (a & b);
  }
}

// By the order of their bits as signed whole numbers, the negative ones turned round.
double extreme(Combine combine, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  const auto key = [](double value) {
    const auto bits = std::bit_cast<std::int64_t>(value);
    return bits < 0 ? std::numeric_limits<std::int64_t>::min() - (bits + 1) - 1 : bits;
  };
  return (key(a) < key(b)) == (combine == Combine::kMin) ? a : b;
}

double rounded(E accumulator, double value) {
  return is_single(accumulator) ? static_cast<double>(static_cast<float>(value)) : value;
}

double load_real(E element, const Bytes& bytes, std::size_t index) {
  if (element == E::kFloat16)
    return static_cast<double>(float_of_half(read<std::uint16_t>(bytes, index * 2)));
  if (element == E::kBFloat16)
    return static_cast<double>(float_of_bfloat(read<std::uint16_t>(bytes, index * 2)));
  if (element == E::kFloat32) return static_cast<double>(read<float>(bytes, index * 4));
  return read<double>(bytes, index * 8);
}

void store_real(E element, Bytes& bytes, std::size_t index, double value) {
  if (element == E::kFloat16) return write(bytes, index * 2, half_of_float(static_cast<float>(value)));
  if (element == E::kBFloat16) return write(bytes, index * 2, bfloat_of_float(static_cast<float>(value)));
  if (element == E::kFloat32) return write(bytes, index * 4, static_cast<float>(value));
  write(bytes, index * 8, value);
}

template <class Part>
void multiply_complex(const ReduceForm& form, std::span<const Bytes> sources, std::size_t index,
                      Bytes& result) {
  struct Pair {
    Part real, imaginary;
  };
  const auto load = [&](std::size_t i) { return read<Pair>(sources[i], index * sizeof(Pair)); };
  const auto merge = [](const Pair& a, const Pair& b) {
    const Part ac = a.real * b.real;
    const Part bd = a.imaginary * b.imaginary;
    const Part ad = a.real * b.imaginary;
    const Part bc = a.imaginary * b.real;
    return Pair{ac - bd, ad + bc};
  };
  write(result, index * sizeof(Pair), walk<Pair>(form, load, merge));
}

}  // namespace

bool is_defined_operation(const ReduceForm& form) {
  const bool is_one_type = form.input == form.accumulator && form.input == form.output;
  if (is_whole(form.input)) return is_one_type;
  if (form.combine >= Combine::kBitAnd || form.input > E::kComplex128) return false;
  if (form.combine != Combine::kProduct) return is_one_type && !is_complex(form.input);
  if (is_single(form.input)) return form.accumulator == E::kFloat32 && is_single(form.output);
  return is_one_type;
}

Bytes reference_operation(const ReduceForm& form, std::span<const Bytes> sources, std::size_t count) {
  Bytes result(count * size_of(form.output));
  for (std::size_t index = 0; index < count; ++index) {
    if (is_whole(form.input)) {
      const auto load = [&](std::size_t i) { return load_whole(form.input, sources[i], index); };
      const auto merge = [&](std::uint64_t a, std::uint64_t b) { return merge_whole(form, a, b); };
      const auto bits = walk<std::uint64_t>(form, load, merge);
      std::memcpy(result.data() + index * size_of(form.output), &bits, size_of(form.output));
    } else if (form.input == E::kComplex64) {
      multiply_complex<float>(form, sources, index, result);
    } else if (form.input == E::kComplex128) {
      multiply_complex<double>(form, sources, index, result);
    } else {
      const auto load = [&](std::size_t i) { return load_real(form.input, sources[i], index); };
      const auto merge = [&](double a, double b) {
        return form.combine == Combine::kProduct ? rounded(form.accumulator, a * b)
                                                 : extreme(form.combine, a, b);
      };
      store_real(form.output, result, index, walk<double>(form, load, merge));
    }
  }
  return result;
}

}  // namespace onesum::engine::testing
