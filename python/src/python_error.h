// A Python exception on its way through the library. Unlike nanobind's it may be copied and rethrown on
// several threads, as the library does with what a user's function threw.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include <nanobind/nanobind.h>

namespace onesum::python {

namespace nb = nanobind;

class PythonError : public std::exception {
 public:
  explicit PythonError(const nb::python_error& error);  // with the GIL

  const char* what() const noexcept override { return what_->c_str(); }  // "ValueError: …"
  PyObject* value() const noexcept { return value_.get(); }
  void raise() const;  // sets Python's error; with the GIL

 private:
  std::shared_ptr<PyObject> value_;
  std::shared_ptr<const std::string> what_;
};

// Calls a function that uses Python, with the GIL; what Python raises is a PythonError.
template <class Fn>
auto calling_python(Fn&& fn) {
  try {
    return fn();
  } catch (const nb::python_error& error) {
    throw PythonError(error);
  }
}

}  // namespace onesum::python
