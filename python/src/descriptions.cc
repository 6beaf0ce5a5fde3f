// What tensors are: DType, Shape, Device.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/shape.h>

#include "bindings.h"
#include "read.h"

namespace onesum::python {
namespace {

void bind_dtype(nb::module_& module) {
  nb::enum_<DType>(module, "DType", R"(Element types of tensors.

Wherever one is taken, NumPy's dtypes and names are too; `numpy` gives NumPy's.

>>> onesum.DType.FLOAT32.numpy
dtype('float32')
>>> onesum.Tensor.empty("bf16", [2], "CPU:0").dtype
DType.BFLOAT16
)")
      .value("BOOL", DType::kBool)
      .value("UINT8", DType::kUInt8)
      .value("INT8", DType::kInt8)
      .value("UINT16", DType::kUInt16)
      .value("INT16", DType::kInt16)
      .value("UINT32", DType::kUInt32)
      .value("INT32", DType::kInt32)
      .value("UINT64", DType::kUInt64)
      .value("INT64", DType::kInt64)
      .value("FLOAT16", DType::kFloat16)
      .value("BFLOAT16", DType::kBFloat16)
      .value("FLOAT32", DType::kFloat32)
      .value("FLOAT64", DType::kFloat64)
      .value("COMPLEX64", DType::kComplex64)
      .value("COMPLEX128", DType::kComplex128)
      .def_prop_ro(
          "numpy",
          [](DType dtype) {
            nb::object type = nb::cast(std::string(to_string(dtype)));
            if (dtype == DType::kBFloat16) type = nb::module_::import_("ml_dtypes").attr("bfloat16");
            return nb::module_::import_("numpy").attr("dtype")(type);
          },
          nb::sig("def numpy(self) -> onesum.typing.NumpyDType"),
          "NumPy's dtype; of bfloat16 that of ml_dtypes.");

  module.def(
      "to_string", [](DType dtype) { return to_string(dtype); }, nb::arg("dtype"),
      ">>> onesum.to_string(onesum.DType.FLOAT32)\n'float32'\n");
  module.def(
      "parse_dtype", [](std::string_view text) { return parse_dtype(text); }, nb::arg("text"),
      R"(The type of a name: "float32", "f32", "bf16", "i64", ….

>>> onesum.parse_dtype("u8")
DType.UINT8
)");
  module.def(
      "size_of", [](DTypeLike dtype) { return size_of(read(dtype)); }, nb::arg("dtype"),
      R"(Bytes of one element.

>>> onesum.size_of(np.complex128)
16
)");
  module.def(
      "result_dtype", [](ReduceOp op, DTypeLike input) { return result_dtype(op, read(input)); },
      nb::arg("op"), nb::arg("input"), R"(The type of a reduction's result.

>>> onesum.result_dtype(onesum.ReduceOp.MEAN, np.int32)
DType.FLOAT64
)");
}

void bind_shape(nb::module_& module) {
  nb::class_<Shape>(module, "Shape", R"(The extents of a tensor. None is a scalar.

Reads like a tuple; tuples, lists and integers are taken wherever a Shape is.

>>> shape = onesum.Shape([2, 3])
>>> shape.elements, shape.rank, tuple(shape), shape == (2, 3)
(6, 2, (2, 3), True)
)")
      .def(
          "__init__", [](Shape* self, ShapeLike extents) { new (self) Shape(read(extents)); },
          nb::arg("extents") = nb::tuple())
      .def_prop_ro(
          "extents",
          [](const Shape& shape) {
            return nb::tuple(
                nb::cast(std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end())));
          },
          nb::sig("def extents(self) -> tuple[int, ...]"))
      .def_prop_ro("rank", &Shape::rank)
      .def_prop_ro("elements", &Shape::elements)
      .def("__len__", &Shape::rank)
      .def(
          "__getitem__",
          [](nb::handle self, nb::handle key) { return nb::object(self.attr("extents")[key]); },
          nb::sig("def __getitem__(self, axis: int, /) -> int"))
      .def(
          "__iter__", [](nb::handle self) { return nb::iter(self.attr("extents")); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[int]"))
      .def(
          "__eq__",
          [](const Shape& self, nb::handle other) {
            if (nb::isinstance<Shape>(other)) return self == *nb::inst_ptr<Shape>(other);
            if (!nb::isinstance<nb::tuple>(other) && !nb::isinstance<nb::list>(other)) return false;
            return nb::tuple(nb::find(self).attr("extents")).equal(nb::tuple(other));
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](nb::handle self) { return nb::hash(self.attr("extents")); })
      .def("to_string", &Shape::to_string, "The text.\n\n>>> onesum.Shape((2, 3)).to_string()\n'[2,3]'\n")
      .def("__str__", &Shape::to_string)
      .def("__repr__", [](const Shape& self) { return "Shape(" + self.to_string() + ")"; });
}

void bind_device(nb::module_& module) {
  nb::class_<Device>(module, "Device",
                     R"(Where a tensor's memory lives. Strings are taken wherever a Device is.

>>> device = onesum.Device("/job:worker/task:1/device:GPU:0")
>>> device.job, device.task, device.type, device.index
('worker', 1, 'GPU', 0)
>>> print(onesum.Device("CPU:1").canonical())
/job:localhost/replica:0/task:0/device:CPU:1
)")
      .def(
          "__init__",
          [](Device* self, DeviceLike text) {
            new (self) Device(text.object.is_none() ? Device() : read(text, "Device"));
          },
          nb::arg("text").none() = nb::none(),
          nb::sig("def __init__(self, text: onesum.typing.DeviceLike | None = None) -> None"))
      .def_static(
          "parse", [](std::string_view text) { return Device::parse(text); }, nb::arg("text"),
          R"(The device of a text.

>>> onesum.Device.parse("gpu:1")
Device('/device:GPU:1')
)")
      .def_prop_ro("job", &Device::job)
      .def_prop_ro("replica", &Device::replica)
      .def_prop_ro("task", &Device::task)
      .def_prop_ro("type", &Device::type)
      .def_prop_ro("index", &Device::index)
      .def("is_empty", &Device::is_empty, "Whether nothing is set.\n\n>>> onesum.Device().is_empty()\nTrue\n")
      .def("is_complete", &Device::is_complete,
           "Whether all five fields are set.\n\n>>> onesum.Device(\"CPU:0\").is_complete()\nFalse\n")
      .def(
          "merged_over",
          [](const Device& self, DeviceLike defaults) {
            return self.merged_over(read(defaults, "defaults"));
          },
          nb::arg("defaults"), R"(This device with what it leaves unset taken from `defaults`.

>>> onesum.Device("CPU:0").merged_over("/job:worker/task:1")
Device('/job:worker/task:1/device:CPU:0')
)")
      .def(
          "canonical",
          [](const Device& self, DeviceLike defaults) {
            return self.canonical(defaults.object.is_none() ? Device() : read(defaults, "defaults"));
          },
          nb::arg("defaults").none() = nb::none(),
          nb::sig("def canonical(self, defaults: onesum.typing.DeviceLike | None = None) -> Device"),
          R"(Complete: merged over `defaults`, then over /job:localhost/replica:0/task:0/device:CPU:0.

>>> onesum.Device("/task:1").canonical().is_complete()
True
)")
      .def("host", &Device::host, R"(The CPU that this device hangs on.

>>> onesum.Device("/task:1/device:GPU:3").host()
Device('/task:1/device:CPU:0')
)")
      .def("to_string", &Device::to_string,
           "The text, which parses back.\n\n>>> onesum.Device(\"cpu:0\").to_string()\n'/device:CPU:0'\n")
      .def("__str__", &Device::to_string)
      .def("__repr__", [](const Device& self) { return "Device('" + self.to_string() + "')"; })
      .def(
          "__eq__",
          [](const Device& self, nb::handle other) {
            return nb::isinstance<Device>(other) && self == *nb::inst_ptr<Device>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Device& self) { return static_cast<Py_hash_t>(self.hash() >> 1); });
}

}  // namespace

void bind_descriptions(nb::module_& module) {
  bind_dtype(module);
  bind_shape(module);
  bind_device(module);
}

}  // namespace onesum::python
