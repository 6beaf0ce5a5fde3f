#include "base/element.h"

#include <array>

namespace onesum {

namespace {

enum class Kind : std::uint8_t { kUnsigned, kSigned, kReal, kComplex };

// Enough of a type to decide whether its values are values of another. Of floating-point types, every value
// is an integer of at most `digits` binary digits times a power of two from `lowest` up, below 2^`highest`.
struct Traits {
  std::string_view name;
  std::size_t size;
  Kind kind;
  int digits;
  int lowest;
  int highest;
};

constexpr std::array<Traits, kNumElements> kTraits = {{
    {"bool", 1, Kind::kUnsigned, 1, 0, 1},
    {"uint8", 1, Kind::kUnsigned, 8, 0, 8},
    {"int8", 1, Kind::kSigned, 7, 0, 7},
    {"uint16", 2, Kind::kUnsigned, 16, 0, 16},
    {"int16", 2, Kind::kSigned, 15, 0, 15},
    {"uint32", 4, Kind::kUnsigned, 32, 0, 32},
    {"int32", 4, Kind::kSigned, 31, 0, 31},
    {"uint64", 8, Kind::kUnsigned, 64, 0, 64},
    {"int64", 8, Kind::kSigned, 63, 0, 63},
    {"float16", 2, Kind::kReal, 11, -24, 16},
    {"bfloat16", 2, Kind::kReal, 8, -133, 128},
    {"float32", 4, Kind::kReal, 24, -149, 128},
    {"float64", 8, Kind::kReal, 53, -1074, 1024},
    {"complex64", 8, Kind::kComplex, 24, -149, 128},
    {"complex128", 16, Kind::kComplex, 53, -1074, 1024},
    {"int128", 16, Kind::kSigned, 127, 0, 127},
    {"uint128", 16, Kind::kUnsigned, 128, 0, 128},
}};

constexpr const Traits& traits(Element element) noexcept {
  return kTraits[static_cast<std::size_t>(element)];
}

}  // namespace

std::size_t size_of(Element element) noexcept { return traits(element).size; }

std::string_view to_string(Element element) noexcept { return traits(element).name; }

std::optional<Element> parse_element(std::string_view text) noexcept {
  for (int i = 0; i < kNumElements; ++i) {
    if (kTraits[static_cast<std::size_t>(i)].name == text) return static_cast<Element>(i);
  }
  return std::nullopt;
}

Element accumulator_of(ReduceOp op, Element input) noexcept {
  switch (input) {
    case Element::kFloat16:
    case Element::kBFloat16:
      return op == ReduceOp::kSum || op == ReduceOp::kMean || op == ReduceOp::kProduct ? Element::kFloat32
                                                                                       : input;
    case Element::kUInt8:
    case Element::kUInt16:
    case Element::kUInt32:
      return op == ReduceOp::kMean ? Element::kUInt64 : input;
    case Element::kInt8:
    case Element::kInt16:
    case Element::kInt32:
      return op == ReduceOp::kMean ? Element::kInt64 : input;
    case Element::kUInt64:
      return op == ReduceOp::kMean ? Element::kUInt128 : input;
    case Element::kInt64:
      return op == ReduceOp::kMean ? Element::kInt128 : input;
    default:
      return input;
  }
}

bool widens_to(Element from, Element to) noexcept {
  if (from == to) return true;
  const Traits& f = traits(from);
  const Traits& t = traits(to);
  if (to == Element::kBool) return false;
  if (f.kind > t.kind) return false;  // no signed value in an unsigned type, no fraction in an integer, …
  return f.digits <= t.digits && f.lowest >= t.lowest && f.highest <= t.highest;
}

}  // namespace onesum
