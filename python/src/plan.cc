// What a call would do.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <onesum/plan.h>

#include "bindings.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {

void bind_plan(nb::module_& module) {
  nb::class_<ReduceSpec>(module, "ReduceSpec",
                         R"(What a reduction would be given, without the memory: for planning.

>>> spec = onesum.ReduceSpec("float32", (1024,), ["CPU:0", "CPU:1"], ["CPU:0"])
>>> onesum.ReductionToOneDevice().plan(onesum.ReduceOp.SUM, [spec]).algorithm
'one_device'
)")
      .def(
          "__init__",
          [](ReduceSpec* self, DTypeLike dtype, ShapeLike shape, DevicesLike replicas,
             DevicesLike destinations) {
            new (self) ReduceSpec{read(dtype), read(shape), read(replicas, "replicas"),
                                  read(destinations, "destinations")};
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("replicas"), nb::arg("destinations"))
      .def_ro("dtype", &ReduceSpec::dtype)
      .def_ro("shape", &ReduceSpec::shape)
      .def_ro("replicas", &ReduceSpec::replicas)
      .def_ro("destinations", &ReduceSpec::destinations);

  nb::class_<Plan>(module, "Plan", R"(The schedule of a call, to look at.

>>> ops = onesum.ReductionToOneDevice()
>>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> plan.algorithm, plan.order
('one_device', 'canonical')
>>> plan.verify()
)")
      .def("to_text", &Plan::to_text, R"(The plan as text.

>>> ops = onesum.ReductionToOneDevice()
>>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> plan.to_text().splitlines()[0]
'plan one_device'
)")
      .def("to_svg", &Plan::to_svg, R"(The plan as a drawing.

>>> ops = onesum.ReductionToOneDevice()
>>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> "<svg" in plan.to_svg()
True
)")
      .def(
          "verify", [](const Plan& self) { waiting([&] { self.verify(); }); },
          R"(Proves that the plan computes what it should; raises an error that names the steps at fault.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).verify()
)")
      .def_prop_ro("algorithm", &Plan::algorithm)
      .def_prop_ro("order", &Plan::order, "Of additions: \"canonical\", or what it is instead.")
      .def_prop_ro("pack_elements", [](const Plan& self) { return self.pack_elements(); })
      .def_prop_ro(
          "devices", [](const Plan& self) { return self.devices(); }, "By number in the plan.")
      .def("__str__", &Plan::to_text);
}

}  // namespace onesum::python
