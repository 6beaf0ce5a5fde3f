#include "engine/cuda/kernel_forms.h"

#include <array>
#include <optional>
#include <span>
#include <string>

#include "engine/cuda/reduce_arguments.h"
#include "engine/cuda/reduce_forms.h"
#include "engine/reduce_checks.h"

namespace onesum::engine::cuda {
namespace {

struct NamedForm {
  std::string_view input, accumulator, output, symbol;
};
#define ONESUM_QUOTE(name) #name
#define ONESUM_QUOTE_EXPANDED(name) ONESUM_QUOTE(name)
#define ONESUM_NAMED_FORM(input, accumulator, output) \
  NamedForm{#input, #accumulator, #output,            \
            ONESUM_QUOTE_EXPANDED(ONESUM_CUDA_KERNEL(input, accumulator, output))},
#define ONESUM_NAMED_COMBINE_FORM(input, accumulator, output) \
  NamedForm{#input, #accumulator, #output,                    \
            ONESUM_QUOTE_EXPANDED(ONESUM_CUDA_COMBINE_KERNEL(input, accumulator, output))},
constexpr std::array kNamedSums = {ONESUM_CUDA_FORMS(ONESUM_NAMED_FORM)};
constexpr std::array kNamedOthers = {ONESUM_CUDA_COMBINE_FORMS(ONESUM_NAMED_COMBINE_FORM)};
static_assert(kNamedSums.size() + kNamedOthers.size() == kNumKernels);

bool is_float(Element element) noexcept {
  return element == Element::kFloat16 || element == Element::kBFloat16 || element == Element::kFloat32 ||
         element == Element::kFloat64;
}

// A complex number is two reals: sums and division by a real are made part by part.
Element part_of(Element element) noexcept {
  if (element == Element::kComplex64) return Element::kFloat32;
  if (element == Element::kComplex128) return Element::kFloat64;
  return element;
}

// `wanted` with its place, which the first of the list has, and its symbol.
std::optional<KernelForm> look_up(std::span<const NamedForm> forms, KernelForm wanted) {
  for (const NamedForm& named : forms) {
    if (named.input == to_string(wanted.input) && named.accumulator == to_string(wanted.accumulator) &&
        named.output == to_string(wanted.output)) {
      wanted.symbol = named.symbol;
      return wanted;
    }
    ++wanted.index;
  }
  return std::nullopt;
}

std::optional<KernelForm> look_up(Element input, Element accumulator, Element output, std::size_t parts) {
  return look_up(kNamedSums, {0, {}, input, accumulator, output, parts});
}

// The sum of one integer has its bits.
std::optional<KernelForm> look_up_copy(Element element) {
  const auto copy = [](Element integer, std::size_t parts) {
    return look_up(integer, integer, integer, parts);
  };
  switch (size_of(element)) {
    case 1:
      return copy(Element::kUInt8, 1);
    case 2:
      return copy(Element::kUInt16, 1);
    case 4:
      return copy(Element::kUInt32, 1);
    case 8:
      return copy(Element::kUInt64, 1);
    default:
      return copy(Element::kUInt64, 2);
  }
}

Element unsigned_of(Element element) noexcept {
  switch (size_of(element)) {
    case 1:
      return Element::kUInt8;
    case 2:
      return Element::kUInt16;
    case 4:
      return Element::kUInt32;
    default:
      return Element::kUInt64;
  }
}

// A bool is a byte of 0 or 1.
Combine combine_of_bits(Combine combine) noexcept {
  if (combine == Combine::kProduct || combine == Combine::kMin) return Combine::kBitAnd;
  return combine == Combine::kMax ? Combine::kBitOr : combine;
}

// What is no sum. Minima and maxima of 16-bit floats are those of the same in 32 bits.
std::optional<KernelForm> look_up_other(const ReduceForm& form) {
  if (!is_defined(form.combine, form.accumulator)) return std::nullopt;
  KernelForm wanted{kNamedSums.size(), {}, form.input, form.accumulator, form.output, 1, form.combine};
  if (form.input == Element::kBool) wanted.combine = combine_of_bits(form.combine);
  const bool chooses = form.combine == Combine::kMin || form.combine == Combine::kMax;
  if (form.combine != Combine::kProduct && (form.input != form.accumulator || form.input != form.output)) {
    return std::nullopt;
  }
  if (chooses && is_float(form.input) && size_of(form.input) == 2) {
    wanted.accumulator = Element::kFloat32;
  } else if (form.input < Element::kFloat16 && form.input == form.accumulator && form.input == form.output &&
             (!chooses || form.input == Element::kBool)) {
    wanted.input = wanted.accumulator = wanted.output = unsigned_of(form.input);
  }
  return look_up(kNamedOthers, wanted);
}

std::optional<KernelForm> look_up(const ReduceForm& form) {
  if (is_copy(form)) return look_up_copy(form.input);
  if (form.combine != Combine::kSum && form.merges.size() > 1) return look_up_other(form);
  const bool is_complex = part_of(form.input) != form.input;
  if (is_complex && (form.accumulator != form.input || form.output != form.input)) return std::nullopt;
  const Element output = is_complex ? part_of(form.output) : form.output;
  if (form.divisor != 1 && !is_float(output)) return std::nullopt;
  if (is_complex) return look_up(output, output, output, 2);
  return look_up(form.input, form.accumulator, form.output, 1);
}

// Whether the pointers of a piece, and the steps, fit into the arguments of a launch.
constexpr bool has_room_for(std::size_t sources, std::size_t destinations) noexcept {
  constexpr std::size_t kWords = ReduceArguments::kWords;
  return sources <= kWords && destinations <= kWords &&
         2 + sources + destinations + (sources + 7) / 8 <= kWords;
}
static_assert(has_room_for(256, 200) && has_room_for(430, 1));

}  // namespace

bool is_copy(const ReduceForm& form) noexcept {
  return form.merges.size() == 1 && form.input == form.output && form.divisor == 1;
}

KernelForm find_kernel_form(const ReduceForm& form) {
  check_reduce(form, form.merges.size());
  const std::optional<KernelForm> found = look_up(form);
  if (!found) refuse_types(form);
  if (!has_room_for(form.merges.size(), form.destinations)) {
    refuse_reduce("a reduce of " + std::to_string(form.merges.size()) + " sources to " +
                  std::to_string(form.destinations) +
                  " destinations does not fit into one launch, which has room for 256 and 200");
  }
  return *found;
}

}  // namespace onesum::engine::cuda
