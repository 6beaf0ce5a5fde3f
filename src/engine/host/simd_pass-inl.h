// The SIMD passes: K sources combined in canonical order, read once, written to every destination.
// Included once per SIMD target.
#if defined(ONESUM_ENGINE_HOST_SIMD_PASS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESUM_ENGINE_HOST_SIMD_PASS_INL_H_
#undef ONESUM_ENGINE_HOST_SIMD_PASS_INL_H_
#else
#define ONESUM_ENGINE_HOST_SIMD_PASS_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "engine/device.h"
#include "engine/host/simd_formats-inl.h"
#include "engine/host/simd_rules-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Not worth its code on old processors.
inline constexpr bool kCanStream = HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_SSE4;

// What the loops of a pass use, copied out of the arguments: stores through a byte pointer would otherwise
// make the compiler read it again.
template <class In, class Out, std::size_t kSources, class Rule>
struct Streams {
  using Lane = typename In::Lane;
  static_assert(std::is_same_v<Lane, typename Out::Lane>);

  const std::byte* sources[kSources];
  std::byte* const* destinations;
  std::size_t num_destinations;
  bool divides;
  Lane divisor;

  explicit HWY_INLINE Streams(const KernelArgs& args)
      : destinations(args.destinations),
        num_destinations(args.form->destinations),
        divides(args.form->divisor != 1),
        divisor(static_cast<Lane>(args.form->divisor)) {
    for (std::size_t i = 0; i < kSources; ++i) sources[i] = args.sources[i];
  }

  // The canonical tree over sources [kFirst, kFirst + kCount).
  template <std::size_t kFirst, std::size_t kCount, class D>
  HWY_INLINE hn::Vec<D> tree(D d, std::size_t index) const {
    if constexpr (kCount == 1) {
      return In::load(d, sources[kFirst] + index * In::kBytes);
    } else {
      constexpr std::size_t kLeft = std::bit_floor(kCount - 1);
      return Rule::combine(d, tree<kFirst, kLeft>(d, index), tree<kFirst + kLeft, kCount - kLeft>(d, index));
    }
  }

  template <class D>
  HWY_INLINE hn::Vec<D> result(D d, std::size_t index) const {
    auto v = tree<0, kSources>(d, index);
    if constexpr (Rule::kIsSum && hwy::IsFloat<Lane>()) {
      if (divides) v = hn::Div(v, hn::Set(d, divisor));
    }
    return v;
  }

  template <class D>
  HWY_INLINE void step(D d, std::size_t index) const {
    const auto v = result(d, index);
    for (std::size_t i = 0; i < num_destinations; ++i)
      Out::store(v, d, destinations[i] + index * Out::kBytes);
  }

  template <std::size_t kFirst, std::size_t kCount, class D>
  HWY_INLINE void tree2(D d, std::size_t index, hn::Vec<D>& v0, hn::Vec<D>& v1) const {
    if constexpr (kCount == 1) {
      In::load2(d, sources[kFirst] + index * In::kBytes, v0, v1);
    } else {
      constexpr std::size_t kLeft = std::bit_floor(kCount - 1);
      auto right0 = hn::Zero(d);
      auto right1 = hn::Zero(d);
      tree2<kFirst, kLeft>(d, index, v0, v1);
      tree2<kFirst + kLeft, kCount - kLeft>(d, index, right0, right1);
      v0 = Rule::combine(d, v0, right0);
      v1 = Rule::combine(d, v1, right1);
    }
  }

  // Four vectors at a time. All sources are read before anything is written: a destination may be a source.
  template <bool kStreaming, class D>
  HWY_INLINE void step4(D d, std::size_t index, std::byte* const* to, std::size_t num_to) const {
    const std::size_t two_vectors = 2 * hn::Lanes(d);
    auto v0 = hn::Zero(d);
    auto v1 = hn::Zero(d);
    auto v2 = hn::Zero(d);
    auto v3 = hn::Zero(d);
    tree2<0, kSources>(d, index, v0, v1);
    tree2<0, kSources>(d, index + two_vectors, v2, v3);
    if constexpr (Rule::kIsSum && hwy::IsFloat<Lane>()) {
      if (divides) {
        const auto by = hn::Set(d, divisor);
        v0 = hn::Div(v0, by);
        v1 = hn::Div(v1, by);
        v2 = hn::Div(v2, by);
        v3 = hn::Div(v3, by);
      }
    }
    Out::pack2(d, v0, v1);
    Out::pack2(d, v2, v3);
    for (std::size_t i = 0; i < num_to; ++i) {
      std::byte* at = to[i] + index * Out::kBytes;
      if constexpr (kStreaming) {
        Out::stream2(v0, v1, d, at);
        Out::stream2(v2, v3, d, at + two_vectors * Out::kBytes);
      } else {
        Out::store2(v0, v1, d, at);
        Out::store2(v2, v3, d, at + two_vectors * Out::kBytes);
      }
    }
  }

  // From `index` on by four vectors as far as they go; returns where the rest begins.
  template <bool kStreaming, class D>
  HWY_INLINE std::size_t by_4(D d, std::size_t index, std::size_t end) const {
    const std::size_t four_vectors = 4 * hn::Lanes(d);
    for (; index + four_vectors <= end; index += four_vectors) {
      step4<kStreaming>(d, index, destinations, num_destinations);
    }
    return index;
  }

  // The same to a number of destinations that is known, so that their addresses stay in registers.
  template <std::size_t kDestinations, class D>
  HWY_INLINE std::size_t by_4_to(D d, std::size_t index, std::size_t end) const {
    const std::size_t four_vectors = 4 * hn::Lanes(d);
    std::byte* to[kDestinations];
    for (std::size_t i = 0; i < kDestinations; ++i) to[i] = destinations[i];
    for (; index + four_vectors <= end; index += four_vectors) step4<false>(d, index, to, kDestinations);
    return index;
  }

  // For one, and for as many as there are sources (an all-reduce): up to a quarter faster in the first-level
  // cache. Eight have no room in registers. Of sums only: it is code that takes long to compile.
  template <class D>
  HWY_INLINE std::size_t by_4_to_known(D d, std::size_t index, std::size_t end) const {
    if constexpr (Rule::kIsSum && std::is_same_v<In, Out> && kSources >= 2 && kSources <= 4) {
      if (num_destinations == 1) return by_4_to<1>(d, index, end);
      if (num_destinations == kSources) return by_4_to<kSources>(d, index, end);
    }
    return index;
  }
};

// Elements [begin, end), fewer than a vector or so: vectors of 16 bytes, then single lanes. Touches nothing
// beyond.
template <class S>
HWY_NOINLINE void run_edge(const KernelArgs& args, std::size_t begin, std::size_t end) noexcept {
  using Lane = typename S::Lane;
  const S streams(args);
  const hn::CappedTag<Lane, 16 / sizeof(Lane)> quarter;
  const hn::CappedTag<Lane, 1> one;
  const std::size_t lanes = hn::Lanes(quarter);
  for (; begin + lanes <= end; begin += lanes) streams.step(quarter, begin);
  for (; begin < end; ++begin) streams.step(one, begin);
}

// How many elements lie before the first cache line boundary of a destination; 0 if elements straddle it.
template <class Out>
HWY_INLINE std::size_t elements_to_line(const std::byte* destination) {
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = (kLine - reinterpret_cast<std::uintptr_t>(destination) % kLine) % kLine;
  return bytes % Out::kBytes == 0 ? bytes / Out::kBytes : 0;
}

HWY_INLINE bool all_aligned(std::byte* const* destinations, std::size_t count, std::size_t offset) {
  std::uintptr_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits |= reinterpret_cast<std::uintptr_t>(destinations[i] + offset);
  return bits % 64 == 0;
}

template <class In, class Out, std::size_t kSources, class Rule = Add>
HWY_NOINLINE void run_pass(const KernelArgs& args) noexcept {
  using S = Streams<In, Out, kSources, Rule>;
  const hn::ScalableTag<typename S::Lane> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t end = args.first + args.count;
  if (args.count < lanes) return run_edge<S>(args, args.first, end);
  const S streams(args);
  std::size_t index = args.first;
  if (args.count >= 16 * lanes) {  // worth aligning the stores
    index += elements_to_line<Out>(args.destinations[0] + index * Out::kBytes);
    if (index != args.first) run_edge<S>(args, args.first, index);
    if constexpr (kCanStream) {
      if (args.form->streaming &&
          all_aligned(args.destinations, args.form->destinations, index * Out::kBytes)) {
        index = streams.template by_4<true>(d, index, end);
      }
    }
    index = streams.by_4_to_known(d, index, end);
    index = streams.template by_4<false>(d, index, end);
  }
  for (; index + lanes <= end; index += lanes) streams.step(d, index);
  if (index < end) run_edge<S>(args, index, end);
}

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESUM_ENGINE_HOST_SIMD_PASS_INL_H_
