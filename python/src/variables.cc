// Named, mutable values.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <onesum/variable.h>

#include "bindings.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

void assign(Variable& self, nb::handle value) {
  if (nb::isinstance<Mirrored>(value)) {
    const Mirrored& given = *nb::inst_ptr<Mirrored>(value);
    return waiting([&] { self.assign(given); });
  }
  const Tensor given = read(ArrayLike{value}, cpu(0), Access::kRead, "assign");
  waiting([&] { self.assign(given); });
}

}  // namespace

void bind_variables(nb::module_& module) {
  nb::class_<Variable>(module, "Variable", R"(A named, mutable value.

Made inside a strategy's scope it is mirrored: it has a component on each device of the strategy.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> with strategy.scope():
...     weights = onesum.Variable("weights", np.zeros(2))
>>> weights.is_mirrored(), len(weights.components)
(True, 2)
)")
      .def(
          "__init__",
          [](Variable* self, std::string name, ArrayLike initial) {
            new (self) Variable(std::move(name), read(initial, cpu(0), Access::kRead, "initial"));
          },
          nb::arg("name"), nb::arg("initial"))
      .def_prop_ro("name", &Variable::name)
      .def("is_mirrored", &Variable::is_mirrored,
           "Whether it has a component per device.\n\n"
           ">>> onesum.Variable(\"step\", np.zeros(1)).is_mirrored()\nFalse\n")
      .def_prop_ro("components",
                   [](const Variable& self) {
                     return std::vector<Tensor>(self.components().begin(), self.components().end());
                   })
      .def_prop_ro("devices", &Variable::devices)
      .def(
          "value", [](const Variable& self) { return self.value(); },
          R"(In a replica the component on its device, else the first one.

>>> onesum.Variable("step", np.array([3])).value().numpy()
array([3])
)")
      .def(
          "numpy", [](const Variable& self) { return numpy_array(self.value()); },
          nb::sig("def numpy(self) -> onesum.typing.Array"), R"(The same as an array.

>>> onesum.Variable("step", np.array([3])).numpy()
array([3])
)")
      .def("assign", &assign, nb::arg("value"),
           nb::sig("def assign(self, value: onesum.typing.ArrayLike | Mirrored) -> None"),
           R"(Copies a value into the component on the replica's device; in cross-replica context into all.

>>> step = onesum.Variable("step", np.array([3]))
>>> step.assign(np.array([4]))
>>> step.numpy()
array([4])
)")
      .def("__repr__", [](const Variable& self) { return "Variable('" + self.name() + "')"; });

  nb::class_<MirroredVariable, Variable>(module, "MirroredVariable", R"(A Variable on devices given by name.

>>> onesum.MirroredVariable("w", np.zeros(2), ["CPU:0", "CPU:1"]).devices
[Device('/device:CPU:0'), Device('/device:CPU:1')]
)")
      .def(
          "__init__",
          [](MirroredVariable* self, std::string name, ArrayLike initial, DevicesLike devices) {
            new (self) MirroredVariable(std::move(name), read(initial, cpu(0), Access::kRead, "initial"),
                                        read(devices, "devices"));
          },
          nb::arg("name"), nb::arg("initial"), nb::arg("devices"));
}

}  // namespace onesum::python
