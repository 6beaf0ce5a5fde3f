// Element types as the buffer protocol spells them (Python's struct module, and NumPy's Z for complex
// numbers).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <onesum/dtype.h>

namespace onesum::python {

// The type of a format, of elements of so many bytes in this machine's order; none: onesum has no such type.
std::optional<DType> dtype_of_format(std::string_view format, std::size_t bytes) noexcept;

// The inverse; null for bfloat16, for which there is no format.
const char* format_of(DType dtype) noexcept;

}  // namespace onesum::python
