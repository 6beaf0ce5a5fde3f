// Formats: how elements in memory become vectors of accumulator lanes and back. Included once per SIMD
// target.
//
// A format has a Lane (the accumulator's type), kBytes (of one element in memory), load and store for any
// vector length, and for two vectors at once load2, pack2, store2 and stream2. Two vectors may hold their
// elements in any order as long as it is the same in all of these; pack2 makes of them what store2 and
// stream2 write, to as many places as there are. Addresses need no alignment, except those given to stream2:
// a cache line's.
#if defined(ONESUM_ENGINE_HOST_SIMD_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESUM_ENGINE_HOST_SIMD_FORMATS_INL_H_
#undef ONESUM_ENGINE_HOST_SIMD_FORMATS_INL_H_
#else
#define ONESUM_ENGINE_HOST_SIMD_FORMATS_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Memory to vector and back without a change of type. One lane goes through a variable, because a plain
// dereference would assume alignment.
template <class D>
HWY_INLINE hn::Vec<D> load_lanes(D d, const std::byte* from) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return hn::Set(d, value);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
}

template <class D>
HWY_INLINE void store_lanes(hn::Vec<D> v, D d, std::byte* to) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    const T value = hn::GetLane(v);
    std::memcpy(to, &value, sizeof(T));
  } else {
    hn::StoreU(v, d, reinterpret_cast<T*>(to));
  }
}

template <class D>
HWY_INLINE void stream_lanes(hn::Vec<D> v, D d, std::byte* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    hn::Stream(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
  } else {
    store_lanes(v, d, to);  // no instruction streams less than 16 bytes of a vector
  }
}

// Two vectors at once, in the order of memory, for a format that has the rest. (By reference: compilers keep
// a struct of two vectors in memory.)
template <class Format, std::size_t kFormatBytes>
struct InOrder {
  template <class D>
  static HWY_INLINE void load2(D d, const std::byte* from, hn::Vec<D>& v0, hn::Vec<D>& v1) {
    v0 = Format::load(d, from);
    v1 = Format::load(d, from + hn::Lanes(d) * kFormatBytes);
  }
  template <class D>
  static HWY_INLINE void pack2(D, hn::Vec<D>&, hn::Vec<D>&) {}
  template <class D>
  static HWY_INLINE void store2(hn::Vec<D> v0, hn::Vec<D> v1, D d, std::byte* to) {
    Format::store(v0, d, to);
    Format::store(v1, d, to + hn::Lanes(d) * kFormatBytes);
  }
  template <class D>
  static HWY_INLINE void stream2(hn::Vec<D> v0, hn::Vec<D> v1, D d, std::byte* to) {
    Format::stream(v0, d, to);
    Format::stream(v1, d, to + hn::Lanes(d) * kFormatBytes);
  }
};

// Elements that are accumulators themselves.
template <class T>
struct Plain : InOrder<Plain<T>, sizeof(T)> {
  using Lane = T;
  static constexpr std::size_t kBytes = sizeof(T);

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
    return load_lanes(d, from);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* to) {
    store_lanes(v, d, to);
  }
  template <class D>
  static HWY_INLINE void stream(hn::Vec<D> v, D d, std::byte* to) {
    stream_lanes(v, d, to);
  }
};

// Floats of 16 bits, accumulated in 32. `Bits` converts between lanes of 16 bits and floats.
template <class Bits>
struct Narrow : InOrder<Narrow<Bits>, 2> {
  using Lane = float;
  static constexpr std::size_t kBytes = 2;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
    return Bits::widen(d, load_lanes(hn::Rebind<std::uint16_t, D>(), from));
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* to) {
    store_lanes(Bits::round(d, v), hn::Rebind<std::uint16_t, D>(), to);
  }
  template <class D>
  static HWY_INLINE void stream(hn::Vec<D> v, D d, std::byte* to) {
    stream_lanes(Bits::round(d, v), hn::Rebind<std::uint16_t, D>(), to);
  }
};

template <class D>
using Bits16 = hn::Vec<hn::Rebind<std::uint16_t, D>>;

// The low 16 bits of each lane; the high ones are zero.
template <class D, class V32>
HWY_INLINE Bits16<D> low_halves(D, V32 bits) {
  const hn::Rebind<std::int32_t, D> di;
  return hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), hn::BitCast(di, bits));
}

struct BFloat16Bits {
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, Bits16<D> bits) {
    const hn::Rebind<std::uint32_t, D> du;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
  }
  template <class D>
  static HWY_INLINE Bits16<D> round(D d, hn::Vec<D> v) {
    return low_halves(d, hn::ShiftRight<16>(round_in_place(d, v)));
  }
  // To nearest even, in the upper half of each lane; Highway's own conversion truncates. A NaN could lose its
  // payload by truncation and become an infinity by rounding, so its quiet bit is set instead.
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> round_in_place(D, hn::Vec<D> v) {
    const hn::Rebind<std::uint32_t, D> du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd);
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    return hn::IfThenElse(is_nan, quiet, rounded);
  }
};

// One more in the lanes of a mask.
template <class D, class V, class M>
HWY_INLINE V add_one_where(D d, M mask, V v) {
#if HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(mask, hn::Add(v, hn::Set(d, 1)), v);
#else
  return hn::Sub(v, hn::VecFromMask(d, mask));
#endif
}

// bfloat16 to bfloat16. A lane of 32 bits holds two elements, and either of them becomes a float by one
// operation in place: two vectors are the even and the odd elements. Twice as fast in cache as moving
// elements to lanes of their own.
struct PairedBFloat16 : Narrow<BFloat16Bits> {
  template <class D>
  static HWY_INLINE void load2(D d, const std::byte* from, hn::Vec<D>& even, hn::Vec<D>& odd) {
    const hn::Rebind<std::uint32_t, D> du;
    const auto pairs = load_lanes(du, from);
    even = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
    odd = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000U)));
  }
  template <class D>
  static HWY_INLINE void pack2(D d, hn::Vec<D>& even, hn::Vec<D>& odd) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      even = round_one_by_one(d, even, odd);
    } else {
      even = round_all(d, even, odd);
    }
  }
  template <class D>
  static HWY_INLINE void store2(hn::Vec<D> packed, hn::Vec<D>, D d, std::byte* to) {
    store_lanes(packed, d, to);
  }
  template <class D>
  static HWY_INLINE void stream2(hn::Vec<D> packed, hn::Vec<D>, D d, std::byte* to) {
    stream_lanes(packed, d, to);
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> round_one_by_one(D d, hn::Vec<D> even, hn::Vec<D> odd) {
    const hn::Rebind<std::uint32_t, D> du;
    const auto lower = hn::ShiftRight<16>(BFloat16Bits::round_in_place(d, even));
    const auto upper = hn::And(BFloat16Bits::round_in_place(d, odd), hn::Set(du, 0xFFFF0000U));
    return hn::BitCast(d, hn::Or(lower, upper));
  }

  // In lanes of 16 bits: what is kept of each element, and what is cut off. Up if that is more than a half,
  // or a half and what is kept is odd. Of a NaN nothing is cut off, for it comes from a bfloat16, or is the
  // processor's own.
  template <class D>
  static HWY_INLINE hn::Vec<D> round_all(D d, hn::Vec<D> even, hn::Vec<D> odd) {
    const hn::Rebind<std::uint32_t, D> du;
    const hn::Repartition<std::uint16_t, D> du16;
    const auto e = hn::BitCast(du, even);
    const auto o = hn::BitCast(du, odd);
    const auto kept = hn::OddEven(hn::BitCast(du16, o), hn::BitCast(du16, hn::ShiftRight<16>(e)));
    const auto cut = hn::OddEven(hn::BitCast(du16, hn::ShiftLeft<16>(o)), hn::BitCast(du16, e));
    const auto is_up = hn::Gt(hn::OrAnd(cut, kept, hn::Set(du16, 1)), hn::Set(du16, 0x8000));
    return hn::BitCast(d, add_one_where(du16, is_up, kept));
  }
};
static_assert(std::endian::native == std::endian::little, "the even element is the lower half of a lane");

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
// Targets without instructions for binary16. Highway's emulation truncates, and does not know infinities and
// NaN.
struct Float16Bits {
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, Bits16<D> bits16) {
    const hn::Rebind<std::uint32_t, D> du;
    const auto bits = hn::PromoteTo(du, bits16);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
    const auto exponent = hn::And(magnitude, hn::Set(du, 0x0F800000));
    const auto normal = hn::Add(magnitude, hn::Set(du, 112U << 23));
    const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000));
    // A subnormal m * 2^-24 becomes (2^-14 + m * 2^-24) - 2^-14: exact, and without subnormal operands.
    const auto smallest = hn::Set(du, 113U << 23);
    const auto subnormal =
        hn::BitCast(du, hn::Sub(hn::BitCast(d, hn::Add(magnitude, smallest)), hn::BitCast(d, smallest)));
    auto result = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), subnormal, normal);
    result = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 0x0F800000)), special, result);
    return hn::BitCast(d, hn::Or(result, sign));
  }
  // To nearest even.
  template <class D>
  static HWY_INLINE Bits16<D> round(D d, hn::Vec<D> v) {
    const hn::Rebind<std::uint32_t, D> du;
    const hn::Rebind<std::int32_t, D> di;  // magnitudes fit, and signed comparison is what all targets have
    const auto bits = hn::BitCast(du, v);
    const auto sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000U)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto order = hn::BitCast(di, magnitude);
    // Normal: rebias the exponent and round away the lower 13 bits; too large a value carries into infinity.
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const auto rebias = hn::Set(du, static_cast<std::uint32_t>(-(112 << 23)) + 0xFFF);
    const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, rebias), odd));
    // Below 2^-14: adding 1/2 lets the floating-point unit round at bit 2^-24.
    const auto half = hn::Set(du, 126U << 23);
    const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, half));
    const auto subnormal = hn::Sub(hn::BitCast(du, shifted), half);
    const auto is_small = hn::RebindMask(du, hn::Lt(order, hn::Set(di, 113 << 23)));
    const auto is_large = hn::RebindMask(du, hn::Gt(order, hn::Set(di, 0x477FFFFF)));
    const auto is_nan = hn::RebindMask(du, hn::Gt(order, hn::Set(di, 0x7F800000)));
    auto result = hn::IfThenElse(is_small, subnormal, normal);
    result = hn::IfThenElse(is_large, hn::Set(du, 0x7C00), result);
    result = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), result);
    return low_halves(d, hn::Or(result, sign));
  }
};
#else
struct Float16Bits {
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, Bits16<D> bits) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
  template <class D>
  static HWY_INLINE Bits16<D> round(D, hn::Vec<D> v) {
    return hn::BitCast(hn::Rebind<std::uint16_t, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
  }
};
#endif

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESUM_ENGINE_HOST_SIMD_FORMATS_INL_H_
