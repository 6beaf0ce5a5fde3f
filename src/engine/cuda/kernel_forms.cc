#include "engine/cuda/kernel_forms.h"

#include <array>
#include <optional>
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
constexpr std::array kNamedForms = {ONESUM_CUDA_FORMS(ONESUM_NAMED_FORM)};

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

std::optional<KernelForm> look_up(Element input, Element accumulator, Element output, std::size_t parts) {
  for (std::size_t i = 0; i < kNamedForms.size(); ++i) {
    const NamedForm& named = kNamedForms[i];
    if (named.input == to_string(input) && named.accumulator == to_string(accumulator) &&
        named.output == to_string(output)) {
      return KernelForm{i, named.symbol, input, accumulator, output, parts};
    }
  }
  return std::nullopt;
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

std::optional<KernelForm> look_up(const ReduceForm& form) {
  if (is_copy(form)) return look_up_copy(form.input);
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
