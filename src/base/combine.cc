#include "base/combine.h"

#include <algorithm>
#include <array>

namespace onesum {
namespace {

// By the number of the Combine.
constexpr std::array<std::string_view, kNumCombines> kNames = {"sum",    "product", "min",   "max",
                                                               "bitand", "bitor",   "bitxor"};

// By the number of the ReduceOp.
struct Operation {
  std::string_view name;
  Combine combine;
};
constexpr std::array<Operation, static_cast<std::size_t>(kLastReduceOp) + 1> kOperations = {{
    {"sum", Combine::kSum},
    {"mean", Combine::kSum},
    {"product", Combine::kProduct},
    {"min", Combine::kMin},
    {"max", Combine::kMax},
    {"bitand", Combine::kBitAnd},
    {"bitor", Combine::kBitOr},
    {"bitxor", Combine::kBitXor},
}};

bool is_complex(Element element) noexcept {
  return element == Element::kComplex64 || element == Element::kComplex128;
}

bool is_float(Element element) noexcept {
  return element == Element::kFloat16 || element == Element::kBFloat16 || element == Element::kFloat32 ||
         element == Element::kFloat64;
}

}  // namespace

std::string_view to_string(Combine combine) noexcept {
  const auto number = static_cast<std::size_t>(combine);
  return number < kNames.size() ? kNames[number] : "unknown";
}

std::optional<Combine> parse_combine(std::string_view text) noexcept {
  const auto found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Combine>(found - kNames.begin());
}

std::string_view name_of(ReduceOp op) noexcept {
  return op > kLastReduceOp ? "unknown" : kOperations[static_cast<std::size_t>(op)].name;
}

std::optional<ReduceOp> reduce_op_named(std::string_view name) noexcept {
  const auto found = std::ranges::find(kOperations, name, &Operation::name);
  if (found == kOperations.end()) return std::nullopt;
  return static_cast<ReduceOp>(found - kOperations.begin());
}

std::string reduce_op_names() {
  std::string names;
  for (const Operation& operation : kOperations) {
    names.append(names.empty() ? "" : ", ").append(operation.name);
  }
  return names;
}

std::string why_undefined(ReduceOp op, DType dtype) {
  std::string text = std::string(to_string(dtype)) + " has no " + std::string(name_of(op)) + "; it has";
  std::string_view separator = " ";
  for (const Operation& operation : kOperations) {
    if (!is_defined(operation.combine, element_of(dtype))) continue;
    text.append(separator).append(operation.name);
    separator = ", ";
  }
  return text;
}

Combine combine_of(ReduceOp op) noexcept {
  return op > kLastReduceOp ? Combine::kSum : kOperations[static_cast<std::size_t>(op)].combine;
}

bool is_defined(Combine combine, Element element) noexcept {
  if (combine == Combine::kSum) return element != Element::kBool;
  if (element == Element::kInt128 || element == Element::kUInt128) return false;
  switch (combine) {
    case Combine::kProduct:
      return true;
    case Combine::kMin:
    case Combine::kMax:
      return !is_complex(element);
    default:
      return !is_complex(element) && !is_float(element);
  }
}

}  // namespace onesum
