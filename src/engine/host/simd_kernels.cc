#include "engine/host/simd_kernels.h"

#include <cstring>

#include "engine/host/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/host/simd_kernels.cc"
#include <hwy/foreach_target.h>  // includes this file once for every target
// After foreach_target.h, by its rules.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "engine/host/passes.h"
#include "engine/host/simd_formats-inl.h"
#include "engine/host/simd_pass-inl.h"
#include "engine/host/tree_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {

using U8 = Plain<std::uint8_t>;
using U16 = Plain<std::uint16_t>;
using U32 = Plain<std::uint32_t>;
using U64 = Plain<std::uint64_t>;
using F32 = Plain<float>;
using F64 = Plain<double>;
using F16 = Narrow<Float16Bits>;
using BF16 = Narrow<BFloat16Bits>;

// Passes for fewer numbers of sources where they would be used rarely: compiling them is what takes time.
template <class In, class Out>
constexpr Passes kFewPasses = {
    {nullptr, &run_pass<In, Out, 1>, &run_pass<In, Out, 2>, nullptr, &run_pass<In, Out, 4>}};
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_SSE4
template <class In, class Out>
constexpr Passes kPasses = kFewPasses<In, Out>;
#else
template <class In, class Out>
constexpr Passes kPasses = {{nullptr, &run_pass<In, Out, 1>, &run_pass<In, Out, 2>, &run_pass<In, Out, 3>,
                             &run_pass<In, Out, 4>, nullptr, nullptr, nullptr, &run_pass<In, Out, 8>}};
#endif

// Sums of an element type in itself. Integers wrap, so their sign does not matter.
const Passes* find_plain_passes(Element element) noexcept {
  switch (element) {
    case Element::kUInt8:
    case Element::kInt8:
      return &kFewPasses<U8, U8>;
    case Element::kUInt16:
    case Element::kInt16:
      return &kFewPasses<U16, U16>;
    case Element::kUInt32:
    case Element::kInt32:
      return &kPasses<U32, U32>;
    case Element::kUInt64:
    case Element::kInt64:
      return &kPasses<U64, U64>;
    case Element::kFloat16:
      return &kPasses<F16, F16>;
    case Element::kBFloat16:
      return &kPasses<PairedBFloat16, PairedBFloat16>;
    case Element::kFloat32:
      return &kPasses<F32, F32>;
    case Element::kFloat64:
      return &kPasses<F64, F64>;
    default:
      return find_integer_passes(element, element);
  }
}

const Passes* find_passes(Combine combine, Element input, Element output) noexcept {
  if (combine != Combine::kSum) return find_operation_passes(combine, input, output);
  if (input == output) return find_plain_passes(input);
  if (input == Element::kFloat16 && output == Element::kFloat32) return &kFewPasses<F16, F32>;
  if (input == Element::kFloat32 && output == Element::kFloat16) return &kFewPasses<F32, F16>;
  if (input == Element::kBFloat16 && output == Element::kFloat32) return &kFewPasses<BF16, F32>;
  if (input == Element::kFloat32 && output == Element::kBFloat16) return &kFewPasses<F32, BF16>;
  return find_integer_passes(input, output);
}

// Copies of elements that are kLanes lanes of a format each.
template <class Format, std::size_t kLanes>
void run_copy(const KernelArgs& args) noexcept {
  const std::size_t first = args.first * kLanes;
  const std::size_t count = args.count * kLanes;
  if (args.form->destinations > 1 || args.form->streaming) {
    run_pass<Format, Format, 1>({args.form, args.destinations, args.sources, first, count});
    if (args.form->streaming) hwy::FlushStream();
  } else if (args.destinations[0] != args.sources[0] && count != 0) {
    std::memcpy(args.destinations[0] + first * Format::kBytes, args.sources[0] + first * Format::kBytes,
                count * Format::kBytes);
  }
}

Kernel choose_copy(Element element) noexcept {
  switch (size_of(element)) {
    case 1:
      return &run_copy<U8, 1>;
    case 2:
      return &run_copy<U16, 1>;
    case 4:
      return &run_copy<U32, 1>;
    case 8:
      return &run_copy<U64, 1>;
    default:
      return &run_copy<U64, 2>;
  }
}

bool is_copy(const ReduceForm& form) noexcept {
  return form.merges.size() == 1 && form.input == form.output && form.divisor == 1;
}

// The type in which passes that read an element add.
constexpr Element lane_of(Element element) noexcept {
  return element == Element::kFloat16 || element == Element::kBFloat16 ? Element::kFloat32 : element;
}

// What only chooses among its operands, so that rounding them to 16 bits changes nothing.
bool chooses(const ReduceForm& form) noexcept {
  const Combine combine = combine_in(form);
  return combine == Combine::kMin || combine == Combine::kMax;
}

// The one pass that is all of a form, or null.
Kernel find_single_pass(const ReduceForm& form) noexcept {
  const std::size_t sources = form.merges.size();
  if (form.accumulator != (chooses(form) ? form.input : lane_of(form.input))) return nullptr;
  if (sources > 1 && (!begins_with_canonical_tree(form.merges, sources))) return nullptr;
  const Passes* passes = find_passes(combine_in(form), form.input, form.output);
  return passes == nullptr ? nullptr : (*passes)[sources];
}

bool has_tree(const ReduceForm& form) noexcept {
  const Combine combine = combine_in(form);
  const Passes* push = find_passes(combine, form.input, form.accumulator);
  const Passes* add = find_passes(combine, form.accumulator, form.accumulator);
  const Passes* finish = find_passes(combine, form.accumulator, form.output);
  return push != nullptr && add != nullptr && finish != nullptr &&
         (lane_of(form.accumulator) == form.accumulator || chooses(form));
}

void run_streaming(const KernelArgs& args) noexcept {
  const Kernel pass = find_single_pass(*args.form);
  (pass != nullptr ? pass : &run_tree)(args);
  hwy::FlushStream();
}

bool is_float(Element element) noexcept {
  return element == Element::kFloat16 || element == Element::kBFloat16 || element == Element::kFloat32 ||
         element == Element::kFloat64;
}

Kernel choose_real(const ReduceForm& form) noexcept {
  if (form.divisor != 1 && !is_float(form.output)) return nullptr;
  const Kernel pass = find_single_pass(form);
  if (pass == nullptr && !has_tree(form)) return nullptr;
  if (form.streaming) return &run_streaming;
  return pass != nullptr ? pass : &run_tree;
}

// A complex number is two reals: sums and division by a real are made part by part. Products are not.
Element part_of(Element element) noexcept {
  if (element == Element::kComplex64) return Element::kFloat32;
  if (element == Element::kComplex128) return Element::kFloat64;
  return element;
}
ReduceForm parts_form(const ReduceForm& form) noexcept {
  ReduceForm parts = form;
  parts.input = part_of(form.input);
  parts.accumulator = part_of(form.accumulator);
  parts.output = part_of(form.output);
  return parts;
}
void run_complex(const KernelArgs& args) noexcept {
  const ReduceForm parts = parts_form(*args.form);
  choose_real(parts)({&parts, args.destinations, args.sources, 2 * args.first, 2 * args.count});
}

// Exported functions are not noexcept: Highway cannot take their address.
Kernel choose(const ReduceForm& form) {
  if (is_copy(form)) return choose_copy(form.input);
  const bool complex_input = part_of(form.input) != form.input;
  if (complex_input != (part_of(form.accumulator) != form.accumulator) ||
      complex_input != (part_of(form.output) != form.output)) {
    return nullptr;
  }
  if (!complex_input || combine_in(form) != Combine::kSum) return choose_real(form);
  return choose_real(parts_form(form)) == nullptr ? nullptr : &run_complex;
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onesum::engine::host {

HWY_EXPORT(choose);
HWY_EXPORT(target_name);

Kernel find_simd_kernel(const ReduceForm& form) noexcept { return HWY_DYNAMIC_DISPATCH(choose)(form); }

std::string simd_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace onesum::engine::host
#endif  // HWY_ONCE
