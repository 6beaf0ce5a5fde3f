// What reading arguments has in common (read.cc, read_values.cc): sequences, numbers, and how what cannot be
// read is named. With the GIL.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nanobind/nanobind.h>

namespace onesum::python {

namespace nb = nanobind;

// TypeError "what: list found; expected …".
[[noreturn]] void refuse(const char* what, nb::handle found, const char* expected);

// The same error of one item: "values: …" becomes "values[3]: …".
[[noreturn]] void refuse_item(const char* what, std::size_t index, const nb::builtin_exception& error);

// Lists, tuples and the like; not text.
bool is_sequence(nb::handle object);

// A tuple or list of the items of a sequence.
nb::object items_of(nb::handle given, const char* what, const char* expected);

// What `fn(item, index)` reads of each.
template <class Fn>
auto for_each(nb::handle given, const char* what, const char* expected, const Fn& fn) {
  const nb::object items = items_of(given, what, expected);
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
  std::vector<std::invoke_result_t<Fn, nb::handle, std::size_t>> read;
  read.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      read.push_back(fn(PySequence_Fast_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)), i));
    } catch (const nb::builtin_exception& error) {
      refuse_item(what, i, error);
    }
  }
  return read;
}

}  // namespace onesum::python
