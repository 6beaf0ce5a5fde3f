// Tensor and IndexedSlices.
#include <dlpack/dlpack.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <onesum/tensor.h>

#include "bindings.h"
#include "read.h"
#include "read_only.h"
#include "waiting.h"

namespace onesum::python {
namespace {

Tensor borrow(ArrayLike array, DeviceLike device) {
  return tensor_of(array.object, read(device, "device"), Access::kRead, "Tensor.borrow");
}

// A copy of an array, which NumPy makes dense and puts into shape.
Tensor copy_of(ArrayLike values, ShapeLike shape, DeviceLike device) {
  nb::object array = nb::borrow(values.object);
  if (!nb::isinstance<Tensor>(array)) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    array = numpy.attr("ascontiguousarray")(array).attr("reshape")(numpy.attr("shape")(array));
  }
  const Device wanted = read(device, "device");
  Tensor tensor = read(ArrayLike{array}, cpu(0), Access::kRead, "Tensor.from_").copied_to(wanted);
  return shape.object.is_none() ? tensor : tensor.reshaped(read(shape));
}

nb::object give_dlpack(const Tensor& tensor, nb::handle dl_device, nb::handle copy) {
  const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  const Tensor given = must_copy ? tensor.copied_to(tensor.device()) : tensor;
  if (!dl_device.is_none() && !dl_device.equal(nb::cast(tensor).attr("__dlpack_device__")())) {
    PyErr_SetString(PyExc_BufferError, "a tensor is given only where it is; use copied_to");
    throw nb::python_error();
  }
  return dlpack_capsule(given);
}

nb::tuple dlpack_device(const Tensor& tensor) {
  const auto& type = tensor.device().type();
  return nb::make_tuple(static_cast<int>(type && *type == "GPU" ? kDLCUDA : kDLCPU),
                        tensor.device().index().value_or(0));
}

nb::object as_array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object array = numpy_array(tensor);
  if (dtype.is_none() && copy.is_none()) return array;
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object wanted = dtype.is_none() ? nb::object(array.attr("dtype")) : nb::borrow(dtype);
  if (!copy.is_none() && !nb::cast<bool>(copy) && !wanted.equal(array.attr("dtype")))
    throw nb::value_error("a copy is needed for another dtype");
  const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  return array.attr("astype")(wanted, nb::arg("copy") = must_copy);
}

nb::object only_element(const Tensor& tensor) { return numpy_array(tensor).attr("item")(); }

std::string repr(const Tensor& tensor) {
  if (!tensor) return "Tensor()";
  return "Tensor(" + std::string(to_string(tensor.dtype())) + tensor.shape().to_string() + " on " +
         tensor.device().to_string() + ")";
}

void bind_making(nb::class_<Tensor>& type) {
  type.def(
          "__init__",
          [](Tensor* self, ArrayLike array, DeviceLike device) { new (self) Tensor(borrow(array, device)); },
          nb::arg("array"), nb::arg("device") = "CPU:0")
      .def_static("borrow", &borrow, nb::arg("array"), nb::arg("device") = "CPU:0",
                  R"(The array's own memory, which lives as long as the tensor.

Taken are dense, row-major arrays of types that onesum has: with the buffer protocol (NumPy), of
ml_dtypes.bfloat16, or with `__dlpack__`. Memory of a GPU is on its own device.

>>> array = np.zeros(2, np.float32)
>>> tensor = onesum.Tensor.borrow(array, "CPU:1")
>>> array[0] = 7
>>> tensor.numpy().tolist()
[7.0, 0.0]
)")
      .def_static(
          "empty",
          [](DTypeLike dtype, ShapeLike shape, DeviceLike device) {
            return Tensor::empty(read(dtype), read(shape), read(device, "device"));
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("device") = "CPU:0",
          R"(Memory of the library, its contents unspecified.

>>> onesum.Tensor.empty(np.float32, (2, 3), "CPU:0")
Tensor(float32[2,3] on /device:CPU:0)
)")
      .def_static(
          "from_", &copy_of, nb::arg("values"), nb::arg("shape").none() = nb::none(),
          nb::arg("device") = "CPU:0",
          nb::sig("def from_(values: onesum.typing.ArrayLike, shape: onesum.typing.ShapeLike | None = None, "
                  "device: onesum.typing.DeviceLike = 'CPU:0') -> Tensor"),
          R"(A copy of an array, in memory of the library.

>>> onesum.Tensor.from_(np.arange(6), (2, 3), "CPU:1").numpy().tolist()
[[0, 1, 2], [3, 4, 5]]
)")
      .def_static(
          "from_dlpack",
          [](nb::handle source, std::optional<std::uintptr_t> stream) {
            return tensor_of_dlpack(source, stream);
          },
          nb::arg("source"), nb::arg("stream").none() = nb::none(),
          nb::sig("def from_dlpack(source: typing.Any, stream: int | None = None) -> Tensor"),
          R"(The memory of an object with `__dlpack__` (or of a capsule), on the device that it says.

`stream` is of GPUs only: calls wait for what it was given before.

>>> onesum.Tensor.from_dlpack(np.ones(3))
Tensor(float64[3] on /device:CPU:0)
)");
}

void bind_reading(nb::class_<Tensor>& type) {
  type.def_prop_ro("dtype", &Tensor::dtype)
      .def_prop_ro("shape", [](const Tensor& self) { return self.shape(); })
      .def_prop_ro(
          "device", [](const Tensor& self) { return self.device(); }, "As given: it may be partial.")
      .def_prop_ro("bytes", &Tensor::bytes)
      .def_prop_ro(
          "memory", [](const Tensor& self) { return reinterpret_cast<std::uintptr_t>(self.memory()); },
          "The address on its device.")
      .def("numpy", &numpy_array, nb::sig("def numpy(self) -> onesum.typing.Array"),
           R"(An array that shares the memory and keeps it alive; of CPU memory only.

>>> tensor = onesum.Tensor.from_(np.ones(2))
>>> tensor.numpy()[0] = 5
>>> tensor.numpy().tolist()
[5.0, 1.0]
)")
      .def("__array__", &as_array, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "onesum.typing.Array"))
      .def(
          "__dlpack__",
          [](const Tensor& self, nb::handle, nb::handle, nb::handle dl_device, nb::handle copy) {
            return give_dlpack(self, dl_device, copy);
          },
          nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
          nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none(),
          nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | None = "
                  "None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"))
      .def("__dlpack_device__", &dlpack_device, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      // Without these Python would take the memory for text.
      .def("__float__", [](const Tensor& self) { return nb::float_(only_element(self)); })
      .def("__int__", [](const Tensor& self) { return nb::int_(only_element(self)); })
      .def("__len__",
           [](const Tensor& self) {
             if (self.shape().rank() == 0) throw nb::type_error("a scalar has no length");
             return self.shape()[0];
           })
      .def("__repr__", &repr);
}

void bind_deriving(nb::class_<Tensor>& type) {
  type.def(
          "copied_to",
          [](const Tensor& self, DeviceLike device) {
            const Device wanted = read(device, "device");
            return waiting([&] { return self.copied_to(wanted); });
          },
          nb::arg("device"), R"(A copy on another device of this process.

>>> onesum.Tensor.from_(np.ones(2)).copied_to("CPU:1")
Tensor(float64[2] on /device:CPU:1)
)")
      .def(
          "reshaped", [](const Tensor& self, ShapeLike shape) { return self.reshaped(read(shape)); },
          nb::arg("shape"), R"(The same memory under another shape of as many elements.

>>> onesum.Tensor.from_(np.ones(6)).reshaped((2, 3)).shape
Shape([2,3])
)");
}

void bind_slices(nb::module_& module) {
  nb::class_<IndexedSlices>(module, "IndexedSlices", R"(A sparse update: zeros to which rows are added.

`values[k]` is added at `indices[k]`; an index may occur more than once. `dense_shape` is the shape of the whole,
if it is known. Arrays are on `device`.

>>> rows = onesum.IndexedSlices(np.ones((2, 3)), np.array([4, 0]), (5, 3), device="CPU:1")
>>> rows.values.shape, rows.indices.numpy().tolist(), rows.dense_shape
(Shape([2,3]), [4, 0], Shape([5,3]))
)")
      .def(
          "__init__",
          [](IndexedSlices* self, ArrayLike values, ArrayLike indices, ShapeLike dense_shape,
             DeviceLike device) {
            const Device where = read(device, "device");
            std::optional<Shape> dense;
            if (!dense_shape.object.is_none()) dense = read(dense_shape);
            new (self) IndexedSlices{read(values, where, Access::kRead, "values"),
                                     read(indices, where, Access::kRead, "indices"), dense};
          },
          nb::arg("values"), nb::arg("indices"), nb::arg("dense_shape").none() = nb::none(),
          nb::arg("device") = "CPU:0",
          nb::sig("def __init__(self, values: onesum.typing.ArrayLike, indices: onesum.typing.ArrayLike, "
                  "dense_shape: onesum.typing.ShapeLike | None = None, "
                  "device: onesum.typing.DeviceLike = 'CPU:0') -> None"))
      .def_prop_ro("values", [](const IndexedSlices& self) { return self.values; })
      .def_prop_ro("indices", [](const IndexedSlices& self) { return self.indices; })
      .def_prop_ro("dense_shape", [](const IndexedSlices& self) { return self.dense_shape; })
      .def("__repr__", [](const IndexedSlices& self) {
        return "IndexedSlices(values=" + repr(self.values) + ", indices=" + repr(self.indices) +
               ", dense_shape=" + (self.dense_shape ? self.dense_shape->to_string() : "None") + ")";
      });
  module.def(
      "device_of", [](ValueLike value) { return device_of(read(value, cpu(0), Access::kRead, "value")); },
      nb::arg("value"), R"(The device of a value's memory.

>>> onesum.device_of(onesum.Tensor(np.ones(2), "CPU:3"))
Device('/device:CPU:3')
)");
}

}  // namespace

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor> type(module, "Tensor", nb::type_slots(tensor_slots), nb::is_weak_referenceable(),
                          R"(A handle to memory on a device: of the library, or borrowed from an array.

`Tensor(array, device)` is `Tensor.borrow`. It has the buffer protocol and `__dlpack__`, so `numpy.asarray`
and others share its memory.

>>> tensor = onesum.Tensor(np.ones((2, 3), np.float32), "CPU:1")
>>> tensor
Tensor(float32[2,3] on /device:CPU:1)
>>> np.asarray(tensor).sum()
np.float32(6.0)
)");
  bind_making(type);
  bind_reading(type);
  bind_deriving(type);
  bind_slices(module);
}

}  // namespace onesum::python
