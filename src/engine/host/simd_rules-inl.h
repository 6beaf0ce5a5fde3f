// Rules: how two vectors of accumulator lanes become one. Included once per SIMD target.
//
// All of them are exact or rounded as the one operation is, lane by lane, so that every target gives the same
// bits (base/combine.h, docs/semantics.md).
#if defined(ONESUM_ENGINE_HOST_SIMD_RULES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESUM_ENGINE_HOST_SIMD_RULES_INL_H_
#undef ONESUM_ENGINE_HOST_SIMD_RULES_INL_H_
#else
#define ONESUM_ENGINE_HOST_SIMD_RULES_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Add {
  static constexpr bool kIsSum = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
};

struct Multiply {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      return of_bytes(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  // No target multiplies bytes: even and odd ones in lanes of 16 bits, whose lower halves are kept.
  template <class D>
  static HWY_INLINE hn::Vec<D> of_bytes(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
    } else {
      const hn::Repartition<std::uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a);
      const auto b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0xFF));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

struct Least {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return of_floats<D>(a, b);
    } else {
      return hn::Min(a, b);
    }
  }

  // Either way round, the second operand is taken where one is a NaN and where both are zeros; elsewhere both
  // ways give the same. The bits of both together are a NaN where one of them is, and -0 where one of two
  // zeros is.
  template <class D>
  static HWY_INLINE hn::Vec<D> of_floats(hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::Or(hn::Min(a, b), hn::Min(b, a));
#else
    return hn::Or(hn::IfThenElse(hn::Lt(a, b), a, b), hn::IfThenElse(hn::Lt(b, a), b, a));
#endif
  }
};

struct Greatest {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Neg(Least::of_floats<D>(hn::Neg(a), hn::Neg(b)));
    } else {
      return hn::Max(a, b);
    }
  }
};

struct BitAnd {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  static constexpr bool kIsSum = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Xor(a, b);
  }
};

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESUM_ENGINE_HOST_SIMD_RULES_INL_H_
