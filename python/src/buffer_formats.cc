#include "buffer_formats.h"

#include <algorithm>
#include <array>

namespace onesum::python {
namespace {

constexpr std::string_view kNativeOrders =
    "@=<|";  // the machines that onesum runs on have the low byte first

// By the number of the DType. For integers of 64 bits NumPy's own letter, which is C's long on Linux.
constexpr std::array<const char*, kNumDTypes> kFormats = {"?", "B", "b",     "H", "h", "I",  "i", "L",
                                                          "l", "e", nullptr, "f", "d", "Zf", "Zd"};

// C's integers differ in size between machines: their letters say only whether they have a sign.
std::optional<DType> integer(char letter, std::size_t bytes) noexcept {
  const bool is_signed = std::string_view("bhilqn").find(letter) != std::string_view::npos;
  const bool is_unsigned = std::string_view("BHILQN").find(letter) != std::string_view::npos;
  if (!is_signed && !is_unsigned) return {};
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return {};
  }
}

}  // namespace

std::optional<DType> dtype_of_format(std::string_view format, std::size_t bytes) noexcept {
  if (!format.empty() && (kNativeOrders.find(format.front()) != std::string_view::npos || bytes == 1)) {
    if (std::string_view("@=<>|!").find(format.front()) != std::string_view::npos) format.remove_prefix(1);
  }
  if (format.size() == 1) {
    if (const auto found = integer(format.front(), bytes)) return found;
  }
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i] != nullptr && format == kFormats[i] && bytes == size_of(static_cast<DType>(i)))
      return static_cast<DType>(i);
  }
  return {};
}

const char* format_of(DType dtype) noexcept { return kFormats[static_cast<std::size_t>(dtype)]; }

}  // namespace onesum::python
