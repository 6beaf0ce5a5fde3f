// From tensors to Python's arrays.
#include <memory>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include <onesum/error.h>

#include "arrays.h"
#include "buffer_formats.h"
#include "read_only.h"

namespace onesum::python {
namespace {

// What a buffer that was given out keeps.
struct Export {
  Tensor tensor;
  std::vector<Py_ssize_t> extents;
  std::vector<Py_ssize_t> strides;
};

bool is_on_cpu(const Tensor& tensor) {
  const auto& type = tensor.device().type();
  return !type || *type == "CPU";
}

std::unique_ptr<Export> exported(const Tensor& tensor) {
  auto given = std::make_unique<Export>();
  given->tensor = tensor;
  const auto extents = tensor.shape().extents();
  given->extents.assign(extents.begin(), extents.end());
  given->strides.resize(extents.size());
  auto stride = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    given->strides[axis] = stride;
    stride *= given->extents[axis];
  }
  return given;
}

void fill(Py_buffer* view, PyObject* self, std::unique_ptr<Export> given, int flags) {
  const Tensor& tensor = given->tensor;
  static char nowhere = 0;  // where empty tensors are
  view->buf = tensor.memory() == nullptr ? &nowhere : tensor.memory();
  view->obj = self;
  Py_INCREF(self);
  view->len = static_cast<Py_ssize_t>(tensor.bytes());
  view->readonly = is_read_only(tensor) ? 1 : 0;
  view->itemsize = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(tensor.dtype())) : nullptr;
  view->ndim = static_cast<int>(given->extents.size());
  view->shape = (flags & PyBUF_ND) != 0 ? given->extents.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? given->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = given.release();
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
    std::string problem;
    if (!is_on_cpu(tensor))
      problem = "a tensor on " + tensor.device().to_string() + " has no memory of a CPU";
    if (format_of(tensor.dtype()) == nullptr) problem = "bfloat16 has no buffer format; use numpy()";
    const bool must_write = (flags & PyBUF_WRITABLE) != 0;
    if (must_write && is_read_only(tensor)) problem = "the tensor's memory is read-only";
    if (!problem.empty()) {
      PyErr_SetString(PyExc_BufferError, problem.c_str());
      return -1;
    }
    fill(view, self, exported(tensor), flags);
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<Export*>(view->internal); }

// The 16 bits of each element, for arrays whose type the buffer protocol cannot name.
Tensor as_bits(const Tensor& tensor) {
  return Tensor::borrow(tensor.memory(), DType::kUInt16, tensor.shape(), tensor.device(), {},
                        std::make_shared<const Tensor>(tensor));
}

nb::object as_array(const Tensor& tensor) {
  return nb::module_::import_("numpy").attr("asarray")(nb::cast(tensor));
}

void delete_unused(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // somebody has taken it
  auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

}  // namespace

PyType_Slot tensor_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr},
};

nb::object numpy_array(const Tensor& tensor) {
  if (!is_on_cpu(tensor)) {
    throw Error(ErrorCode::kInvalidArgument, "numpy() of a tensor on " + tensor.device().to_string() +
                                                 ": only the memory of CPUs can be read directly; use "
                                                 "copied_to(\"CPU:0\")");
  }
  if (tensor.dtype() != DType::kBFloat16) return as_array(tensor);
  const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
  return as_array(as_bits(tensor)).attr("view")(type);
}

nb::object dlpack_capsule(const Tensor& tensor) {
  if (is_read_only(tensor)) {
    PyErr_SetString(PyExc_BufferError, "the tensor's memory is read-only, which DLPack cannot say");
    throw nb::python_error();
  }
  DLManagedTensor* const managed = tensor.to_dlpack();
  PyObject* const capsule = PyCapsule_New(managed, "dltensor", delete_unused);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

}  // namespace onesum::python
