// The SIMD passes of everything but sums, in a file of their own: each of the two takes long to compile.
//
// Passes of one and two sources, of floats and bits also of four; the rest is made of them
// (tree_kernel-inl.h).
#include <cstdint>
#include <type_traits>

#include "engine/host/passes.h"
#include "engine/host/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/host/simd_operations.cc"
#include <hwy/foreach_target.h>  // includes this file once for every target
// After foreach_target.h, by its rules.
#include <hwy/highway.h>

#include "engine/host/simd_formats-inl.h"
#include "engine/host/simd_pass-inl.h"
#include "engine/host/simd_rules-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {

// The pass of one source moves bits; it combines nothing.
template <class In, class Out>
constexpr Kernel kMove = &run_pass<In, Out, 1, Add>;

template <class Rule, class T>
constexpr Passes kIntegers = {{nullptr, kMove<Plain<std::make_unsigned_t<T>>, Plain<std::make_unsigned_t<T>>>,
                               &run_pass<Plain<T>, Plain<T>, 2, Rule>}};
template <class Rule, class Format, class AsBits>
constexpr Passes kFloats = {{nullptr, kMove<AsBits, AsBits>, &run_pass<Format, Format, 2, Rule>, nullptr,
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_SSE4
                             nullptr
#else
                             &run_pass<Format, Format, 4, Rule>
#endif
}};
template <class Rule, class In, class Out>
constexpr Passes kConverting = {{nullptr, kMove<In, Out>, &run_pass<In, Out, 2, Rule>}};

template <class Rule>
const Passes* find_float_passes(Element element) noexcept {
  switch (element) {
    case Element::kFloat16:
      return &kFloats<Rule, Narrow<Float16Bits>, Plain<std::uint16_t>>;
    case Element::kBFloat16:
      return &kFloats<Rule, PairedBFloat16, Plain<std::uint16_t>>;
    case Element::kFloat32:
      return &kFloats<Rule, Plain<float>, Plain<std::uint32_t>>;
    case Element::kFloat64:
      return &kFloats<Rule, Plain<double>, Plain<std::uint64_t>>;
    default:
      return nullptr;
  }
}

// Products wrap, so the sign of integers does not matter.
const Passes* find_product_passes(Element input, Element output) noexcept {
  using F32 = Plain<float>;
  using F16 = Narrow<Float16Bits>;
  using BF16 = Narrow<BFloat16Bits>;
  if (input == Element::kFloat16 && output == Element::kFloat32) return &kConverting<Multiply, F16, F32>;
  if (input == Element::kFloat32 && output == Element::kFloat16) return &kConverting<Multiply, F32, F16>;
  if (input == Element::kBFloat16 && output == Element::kFloat32) return &kConverting<Multiply, BF16, F32>;
  if (input == Element::kFloat32 && output == Element::kBFloat16) return &kConverting<Multiply, F32, BF16>;
  if (input != output) return nullptr;
  switch (input) {
    case Element::kUInt8:
    case Element::kInt8:
      return &kIntegers<Multiply, std::uint8_t>;
    case Element::kUInt16:
    case Element::kInt16:
      return &kIntegers<Multiply, std::uint16_t>;
    case Element::kUInt32:
    case Element::kInt32:
      return &kIntegers<Multiply, std::uint32_t>;
    case Element::kUInt64:
    case Element::kInt64:
      return &kIntegers<Multiply, std::uint64_t>;
    case Element::kComplex64:
    case Element::kComplex128:
      return find_complex_product_passes(input);
    default:
      return find_float_passes<Multiply>(input);
  }
}

// The least or the greatest.
template <class Rule>
const Passes* find_extreme_passes(Element element) noexcept {
  switch (element) {
    case Element::kUInt8:
      return &kIntegers<Rule, std::uint8_t>;
    case Element::kInt8:
      return &kIntegers<Rule, std::int8_t>;
    case Element::kUInt16:
      return &kIntegers<Rule, std::uint16_t>;
    case Element::kInt16:
      return &kIntegers<Rule, std::int16_t>;
    case Element::kUInt32:
      return &kIntegers<Rule, std::uint32_t>;
    case Element::kInt32:
      return &kIntegers<Rule, std::int32_t>;
    case Element::kUInt64:
      return &kIntegers<Rule, std::uint64_t>;
    case Element::kInt64:
      return &kIntegers<Rule, std::int64_t>;
    default:
      return find_float_passes<Rule>(element);
  }
}

// Bits are combined byte by byte, whatever element they belong to.
template <class Rule, std::size_t kBytes, std::size_t kSources>
void run_bytes(const KernelArgs& args) noexcept {
  using Byte = Plain<std::uint8_t>;
  run_pass<Byte, Byte, kSources, Rule>(
      {args.form, args.destinations, args.sources, args.first * kBytes, args.count * kBytes});
}
template <class Rule, std::size_t kBytes>
constexpr Passes kBytewise = {
    {nullptr, &run_bytes<Add, kBytes, 1>, &run_bytes<Rule, kBytes, 2>, nullptr, &run_bytes<Rule, kBytes, 4>}};

template <class Rule>
const Passes* find_bit_passes(Element element) noexcept {
  if (element >= Element::kFloat16) return nullptr;  // integers come first
  switch (size_of(element)) {
    case 1:
      return &kBytewise<Rule, 1>;
    case 2:
      return &kBytewise<Rule, 2>;
    case 4:
      return &kBytewise<Rule, 4>;
    default:
      return &kBytewise<Rule, 8>;
  }
}

// A bool is a byte of 0 or 1: of two the product and the minimum are what both have, the maximum what one
// has.
Combine combine_of_bits(Combine combine) noexcept {
  if (combine == Combine::kProduct || combine == Combine::kMin) return Combine::kBitAnd;
  return combine == Combine::kMax ? Combine::kBitOr : combine;
}

// Exported functions are not noexcept: Highway cannot take their address.
const Passes* choose_operation(Combine combine, Element input, Element output) {
  if (combine == Combine::kProduct && input != Element::kBool) return find_product_passes(input, output);
  if (input != output) return nullptr;
  switch (input == Element::kBool ? combine_of_bits(combine) : combine) {
    case Combine::kMin:
      return find_extreme_passes<Least>(input);
    case Combine::kMax:
      return find_extreme_passes<Greatest>(input);
    case Combine::kBitAnd:
      return find_bit_passes<BitAnd>(input);
    case Combine::kBitOr:
      return find_bit_passes<BitOr>(input);
    case Combine::kBitXor:
      return find_bit_passes<BitXor>(input);
    default:
      return nullptr;
  }
}

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onesum::engine::host {

HWY_EXPORT(choose_operation);

const Passes* find_operation_passes(Combine combine, Element input, Element output) noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_operation)(combine, input, output);
}

}  // namespace onesum::engine::host
#endif  // HWY_ONCE
