// Values with one component per replica, and destinations.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <onesum/values.h>
#include <onesum/variable.h>

#include "bindings.h"
#include "read.h"

namespace onesum::python {
namespace {

std::string repr(const char* name, const DistributedValues& self) {
  std::string text = std::string(name) + "(";
  const std::vector<Device> devices = self.devices();
  for (std::size_t i = 0; i < devices.size(); ++i) text += (i > 0 ? ", " : "") + devices[i].to_string();
  return text + ")";
}

std::size_t checked_index(const DistributedValues& self, Py_ssize_t index) {
  const auto size = static_cast<Py_ssize_t>(self.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw nb::index_error("no such replica");
  return static_cast<std::size_t>(index);
}

void bind_base(nb::module_& module) {
  nb::class_<DistributedValues>(module, "DistributedValues", R"(Components in replica order.

Reads like a sequence of `Tensor`s and `IndexedSlices`.

>>> value = onesum.PerReplica([np.ones(2), np.zeros(2)])
>>> len(value), value[1].numpy().tolist(), [str(d) for d in value.devices]
(2, [0.0, 0.0], ['/device:CPU:0', '/device:CPU:1'])
)")
      .def("__len__", &DistributedValues::size)
      .def("__getitem__", [](const DistributedValues& self,
                             Py_ssize_t replica) { return self.values()[checked_index(self, replica)]; })
      .def(
          "__iter__",
          [](const DistributedValues& self) {
            return nb::iter(nb::cast(std::vector<Value>(self.values().begin(), self.values().end())));
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor | IndexedSlices]"))
      .def_prop_ro("size", &DistributedValues::size)
      .def_prop_ro("values",
                   [](const DistributedValues& self) {
                     return std::vector<Value>(self.values().begin(), self.values().end());
                   })
      .def("value", &DistributedValues::value, nb::arg("replica"), R"(The component of a replica.

>>> onesum.PerReplica([np.ones(2)]).value(0)
Tensor(float64[2] on /device:CPU:0)
)")
      .def(
          "tensor", [](const DistributedValues& self, std::size_t replica) { return self.tensor(replica); },
          nb::arg("replica") = 0, R"(The same, which must be dense.

>>> onesum.PerReplica([np.ones(2)]).tensor().numpy().tolist()
[1.0, 1.0]
)")
      .def(
          "slices", [](const DistributedValues& self, std::size_t replica) { return self.slices(replica); },
          nb::arg("replica") = 0, R"(The same, which must be sparse.

>>> rows = onesum.IndexedSlices(np.ones((1, 2)), np.array([3]))
>>> onesum.PerReplica([rows]).slices().indices.numpy().tolist()
[3]
)")
      .def_prop_ro("devices", &DistributedValues::devices);
}

void bind_mirrored(nb::module_& module) {
  nb::class_<Mirrored, DistributedValues>(module, "Mirrored", R"(Equal copies, one per device.

What reductions return. With one device it reads as that tensor: `numpy()`, `numpy.asarray`, `__dlpack__`.

>>> ops = onesum.ReductionToOneDevice()
>>> value = onesum.PerReplica([np.array([1.0]), np.array([2.0])])
>>> ops.reduce(onesum.ReduceOp.SUM, value, "CPU:0").numpy()
array([3.])
>>> ops.reduce(onesum.ReduceOp.SUM, value, value)
Mirrored(/job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:CPU:1)
)")
      .def(
          "__init__",
          [](Mirrored* self, ValuesLike values, std::optional<DevicesLike> devices) {
            std::optional<std::vector<Device>> named;
            if (devices) named = read(*devices, "devices");
            new (self) Mirrored(read_components(values, named, Access::kRead, "Mirrored"));
          },
          nb::arg("values"), nb::arg("devices") = nb::none())
      .def(
          "numpy", [](const Mirrored& self) { return numpy_array(self); },
          nb::sig("def numpy(self) -> onesum.typing.Array"), R"(The array of the only copy.

>>> onesum.Mirrored([np.ones(2)]).numpy()
array([1., 1.])
)")
      .def(
          "__array__",
          [](const Mirrored& self, nb::handle dtype, nb::handle copy) {
            return nb::cast(static_cast<const Tensor&>(self)).attr("__array__")(dtype, copy);
          },
          nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "onesum.typing.Array"))
      .def(
          "__dlpack__",
          [](const Mirrored& self, const nb::kwargs& options) {
            return nb::cast(static_cast<const Tensor&>(self)).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Mirrored& self) {
            return nb::cast(static_cast<const Tensor&>(self)).attr("__dlpack_device__")();
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__float__", [](const Mirrored& self) { return nb::float_(numpy_array(self).attr("item")()); })
      .def("__int__", [](const Mirrored& self) { return nb::int_(numpy_array(self).attr("item")()); })
      .def("__repr__", [](const Mirrored& self) { return repr("Mirrored", self); });
}

// Arrays on devices by name; one that is no list is one replica.
PerReplica placed(PerReplicaLike values, const std::vector<Device>& devices) {
  const nb::handle object = values.object;
  std::vector<Value> components;
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    components = read_components(ValuesLike{object}, devices, Access::kRead, "PerReplica");
  } else {
    const Device& only = devices.empty() ? cpu(0) : devices.front();
    components.push_back(read(ValueLike{object}, only, Access::kRead, "PerReplica"));
  }
  if (components.size() != devices.size()) {
    throw nb::value_error(("PerReplica: " + std::to_string(components.size()) + " values, but " +
                           std::to_string(devices.size()) + " devices")
                              .c_str());
  }
  return components.empty() ? PerReplica() : PerReplica(std::move(components));
}

void bind_per_replica(nb::module_& module) {
  nb::class_<PerReplica, DistributedValues>(module, "PerReplica",
                                            R"(Components that may differ: what is reduced.

Components are `Tensor`s, `IndexedSlices` or arrays; arrays are on `devices`, or on CPU:0, CPU:1, … if none are
given. Where one is taken, a list of components, a `Mirrored`, a variable, or one component is taken too.
`PerReplica()` has none: what a worker passes that brings nothing to a call of several, or gets nothing of it.

>>> onesum.PerReplica([np.ones(2), np.ones(2)], devices=["/task:0/device:CPU:0", "/task:1/device:CPU:0"])
PerReplica(/task:0/device:CPU:0, /task:1/device:CPU:0)
)")
      .def(
          "__init__",
          [](PerReplica* self, PerReplicaLike values, std::optional<DevicesLike> devices) {
            new (self) PerReplica(devices ? placed(values, read(*devices, "devices"))
                                          : read(values, Access::kRead, "PerReplica"));
          },
          nb::arg("values") = nb::tuple(), nb::arg("devices") = nb::none())
      .def("__repr__", [](const PerReplica& self) { return repr("PerReplica", self); });
}

void bind_destinations(nb::module_& module) {
  nb::class_<Destination>(module, "Destination",
                          R"(Where results go: the devices of a value, or a device string.

Strings, values and variables are taken wherever a Destination is.

>>> onesum.Destination("CPU:0").devices
[Device('/device:CPU:0')]
)")
      .def(
          "__init__", [](Destination* self, DestinationLike where) { new (self) Destination(read(where)); },
          nb::arg("where"))
      .def_prop_ro("devices",
                   [](const Destination& self) {
                     return std::vector<Device>(self.devices().begin(), self.devices().end());
                   })
      .def(
          "is_text", &Destination::is_text,
          "Whether it was made from a device string.\n\n>>> onesum.Destination(\"CPU:0\").is_text()\nTrue\n");
  nb::class_<ValueDestination>(module, "ValueDestination", R"(A value and where its reduction goes.

Tuples are taken wherever one is.

>>> pair = onesum.ValueDestination([np.ones(2), np.ones(2)], "CPU:0")
>>> len(pair.value), pair.destination.devices
(2, [Device('/device:CPU:0')])
)")
      .def(
          "__init__",
          [](ValueDestination* self, PerReplicaLike value, DestinationLike destination) {
            new (self) ValueDestination{read(value, Access::kRead, "value"), read(destination)};
          },
          nb::arg("value"), nb::arg("destination"))
      .def_ro("value", &ValueDestination::value)
      .def_ro("destination", &ValueDestination::destination);
}

}  // namespace

void bind_values(nb::module_& module) {
  bind_base(module);
  bind_mirrored(module);
  bind_per_replica(module);
  bind_destinations(module);
}

}  // namespace onesum::python
