// Arrays of Python as tensors, and back, without copying.
//
// Taken are objects with the buffer protocol (NumPy arrays), arrays of ml_dtypes.bfloat16, and objects with
// __dlpack__. What is not dense and row-major, in another byte order, or of a type that onesum does not have,
// is refused: nothing is ever copied silently.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include <onesum/dtype.h>
#include <onesum/tensor.h>

namespace onesum::python {

namespace nb = nanobind;

enum class Access { kRead, kWrite };

// The memory of an array; the tensor keeps the array alive. `device` is the name of CPU memory; GPU memory
// has its own. `what` begins the message of an error.
Tensor tensor_of(nb::handle array, const Device& device, Access access, const char* what);

// The same of an object with __dlpack__, or of the capsule that it gives; on the device that it says.
Tensor tensor_of_dlpack(nb::handle source, std::optional<std::uintptr_t> stream);

// The type of a NumPy dtype, a Python or NumPy scalar type, or a name; none if it is no such thing.
std::optional<DType> numpy_dtype(nb::handle object);

// An array that shares the tensor's memory and keeps it; of CPU memory only.
nb::object numpy_array(const Tensor& tensor);

// A capsule for consumers of DLPack.
nb::object dlpack_capsule(const Tensor& tensor);

// What a Tensor type adds to Python's own slots: the buffer protocol.
extern PyType_Slot tensor_slots[];

}  // namespace onesum::python
