// From Python's arrays to tensors.
#include <memory>
#include <string>
#include <utility>

#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>

#include <onesum/error.h>

#include "arrays.h"
#include "buffer_formats.h"
#include "owners.h"
#include "read_only.h"

namespace onesum::python {
namespace {

[[noreturn]] void refuse_type(const std::string& message) { throw nb::type_error(message.c_str()); }
[[noreturn]] void refuse_value(const std::string& message) { throw nb::value_error(message.c_str()); }

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::object(object.type().attr("__name__")));
}

// Of anything that has one; empty: it has none.
std::string dclass_name(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  return dtype.is_none() ? "" : nb::str(dtype).c_str();
}

std::string shape_text(const Py_buffer& view) {
  std::string text = "[";
  for (int axis = 0; axis < view.ndim; ++axis) {
    if (axis > 0) text += ',';
    text += std::to_string(view.shape[axis]);
  }
  text += ']';
  return text;
}

DType checked_dtype(nb::handle array, const Py_buffer& view, const char* what) {
  const std::string_view format = view.format == nullptr ? "B" : view.format;
  if (const auto found = dtype_of_format(format, static_cast<std::size_t>(view.itemsize))) return *found;
  const std::string name = dclass_name(array);
  std::string elements = "elements of format '" + std::string(format) + "'";
  if (!name.empty()) elements = "dtype " + name;
  const bool is_swapped = format.front() == '>' || format.front() == '!';
  if (is_swapped)
    refuse_type(std::string(what) + ": " + elements +
                " is not in this machine's byte order; convert it first");
  refuse_type(std::string(what) + ": " + elements + " is not known to onesum; expected one of onesum.DType");
}

void check_dense(const Py_buffer& view, const char* what) {
  if (PyBuffer_IsContiguous(&view, 'C') != 0) return;
  refuse_value(std::string(what) + ": an array of shape " + shape_text(view) +
               " is not dense and row-major; pass numpy.ascontiguousarray(…), or a copy");
}

void check_writable(const Py_buffer& view, Access access, const char* what) {
  if (access == Access::kWrite && view.readonly != 0)
    refuse_value(std::string(what) + ": the array is read-only; results need memory that can be written");
}

// Takes over the buffer in any case.
Tensor tensor_of_buffer(nb::handle array, Py_buffer& view, std::optional<DType> tag, const Device& device,
                        Access access, const char* what) {
  std::shared_ptr<const void> owner = kept(view);
  if (view.readonly != 0) remember_read_only(view.buf);
  const DType dtype = tag ? *tag : checked_dtype(array, view, what);
  check_dense(view, what);
  check_writable(view, access, what);
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  const auto* const extents = reinterpret_cast<const std::int64_t*>(view.shape);
  return Tensor::borrow(view.buf, dtype, Shape(std::span(extents, static_cast<std::size_t>(view.ndim))),
                        device, {}, std::move(owner));
}

// ml_dtypes has types that the buffer protocol cannot name.
bool is_bfloat16(nb::handle array) { return dclass_name(array) == "bfloat16" && nb::hasattr(array, "view"); }

std::optional<Tensor> from_buffer(nb::handle array, const Device& device, Access access, const char* what) {
  if (PyObject_CheckBuffer(array.ptr()) == 0) return {};
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_RECORDS_RO) == 0)
    return tensor_of_buffer(array, view, {}, device, access, what);
  PyErr_Clear();
  if (!is_bfloat16(array)) {
    if (nb::hasattr(array, "__dlpack__") && !nb::hasattr(array, "__array_interface__")) return {};
    refuse_type(std::string(what) + ": dtype " + dclass_name(array) +
                " is not known to onesum; expected one of onesum.DType");
  }
  const nb::object bits = array.attr("view")("uint16");
  if (PyObject_GetBuffer(bits.ptr(), &view, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  return tensor_of_buffer(bits, view, DType::kBFloat16, device, access, what);
}

DLManagedTensor* managed_of(nb::handle capsule) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
  if (pointer == nullptr) throw nb::python_error();
  return static_cast<DLManagedTensor*>(pointer);
}

nb::object capsule_of(nb::handle source, std::optional<std::uintptr_t> stream) {
  if (PyCapsule_CheckExact(source.ptr()) != 0) return nb::borrow(source);
  if (stream) return source.attr("__dlpack__")(nb::arg("stream") = *stream);
  return source.attr("__dlpack__")();
}

// CPU memory under the name of another device.
Tensor renamed(const Tensor& tensor, const Device& device) {
  return Tensor::borrow(tensor.memory(), tensor.dtype(), tensor.shape(), device, {},
                        std::make_shared<const Tensor>(tensor));
}

}  // namespace

Tensor tensor_of_dlpack(nb::handle source, std::optional<std::uintptr_t> stream) {
  const nb::object capsule = capsule_of(source, stream);
  DLManagedTensor* const managed = managed_of(capsule);
  // Producers let the default stream wait for theirs if no other is named.
  std::optional<void*> waited_for;
  if (managed->dl_tensor.device.device_type == kDLCUDA) {
    waited_for =
        reinterpret_cast<void*>(stream.value_or(0));  // NOLINT(performance-no-int-to-ptr): so it is given
  }
  Tensor tensor = Tensor::from_dlpack(managed, waited_for);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return tensor;
}

Tensor tensor_of(nb::handle array, const Device& device, Access access, const char* what) {
  if (auto tensor = from_buffer(array, device, access, what)) return *std::move(tensor);
  if (nb::hasattr(array, "__dlpack__")) {
    const Tensor tensor = tensor_of_dlpack(array, {});
    const bool is_cpu = tensor.device().type() == "CPU";
    return is_cpu && tensor.device() != device ? renamed(tensor, device) : tensor;
  }
  PyObject* const given = array.ptr();
  const bool has_numbers = PyList_Check(given) != 0 || PyTuple_Check(given) != 0 ||
                           PyLong_Check(given) != 0 || PyFloat_Check(given) != 0 ||
                           PyComplex_Check(given) != 0;
  refuse_type(std::string(what) + ": " + class_name(array) +
              " is no array; expected an onesum.Tensor, a NumPy array or an object with __dlpack__" +
              (has_numbers ? "; numpy.array(…) makes one" : ""));
}

std::optional<DType> numpy_dtype(nb::handle object) {
  std::string name;
  if (nb::isinstance<nb::str>(object)) {
    name = nb::cast<std::string>(object);
  } else {
    nb::object dtype = nb::getattr(object, "dtype", nb::none());
    const nb::object make = nb::module_::import_("numpy").attr("dtype");
    if (nb::isinstance(object, make)) {
      dtype = nb::borrow(object);
    } else if (PyType_Check(object.ptr()) != 0) {
      dtype = make(object);
    }
    if (dtype.is_none()) return {};
    if (!nb::cast<bool>(dtype.attr("isnative")))
      refuse_type("dtype " + std::string(nb::str(dtype).c_str()) + " is not in this machine's byte order");
    name = nb::cast<std::string>(nb::object(dtype.attr("name")));
  }
  return parse_dtype(name);
}

}  // namespace onesum::python
