// onesum::Error as the classes of onesum/errors.py, message unchanged.
#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <onesum/error.h>

#include "bindings.h"
#include "owners.h"
#include "python_error.h"
#include "waiting.h"

namespace onesum::python {
namespace {

void raise(const Error& error) {
  const nb::object classes = nb::module_::import_("onesum.errors").attr("_CLASSES");
  const nb::object type = classes[nb::cast(error.code())];
  // Messages may quote bytes of somebody else's that are no text.
  const std::string message = error.what();
  const nb::object text = nb::steal(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  PyErr_SetObject(type.ptr(), text.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    } catch (const PythonError& error) {
      error.raise();
    }
  } catch (nb::python_error& error) {  // a signal's handler may raise in the middle of this
    error.restore();
  }
}

}  // namespace

PythonError::PythonError(const nb::python_error& error)
    : value_(kept(error.value())), what_(std::make_shared<const std::string>([&] {
        const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
        const std::string text = nb::str(error.value()).c_str();
        return text.empty() ? type : type + ": " + text;
      }())) {}

void PythonError::raise() const {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value_.get())), value_.get());
}

void check_signals() {
  const nb::gil_scoped_acquire gil;
  calling_python([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });
}

void bind_errors(nb::module_& module) {
  nb::enum_<ErrorCode>(module, "ErrorCode", R"(What the caller of a call that failed should do.

>>> onesum.InvalidArgumentError.code
ErrorCode.INVALID_ARGUMENT
)")
      .value("INVALID_ARGUMENT", ErrorCode::kInvalidArgument, "Fix the call.")
      .value("UNIMPLEMENTED", ErrorCode::kUnimplemented, "Choose another policy.")
      .value("UNAVAILABLE", ErrorCode::kUnavailable, "Rebuild the group.")
      .value("DEADLINE_EXCEEDED", ErrorCode::kDeadlineExceeded, "Wait longer.")
      .value("ABORTED", ErrorCode::kAborted, "Look at the replica or worker that the message names.")
      .value("RESOURCE_EXHAUSTED", ErrorCode::kResourceExhausted, "Free memory.")
      .value("INTERNAL", ErrorCode::kInternal, "Report a bug.");
  module.def(
      "to_string", [](ErrorCode code) { return to_string(code); }, nb::arg("code"),
      R"(The name of an ErrorCode, a DType or a CollectiveKind, as messages have it.

>>> onesum.to_string(onesum.ErrorCode.DEADLINE_EXCEEDED)
'deadline_exceeded'
)");
  nb::register_exception_translator(translate);
}

}  // namespace onesum::python
