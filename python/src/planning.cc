#include "planning.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "call_options.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

namespace nb = nanobind;
using Ops = CrossDeviceOps;

// What is planned is described by specs or, with memory, by pairs.
std::optional<std::vector<ReduceSpec>> as_specs(PlannedLike given) {
  std::vector<ReduceSpec> specs;
  if (PySequence_Check(given.object.ptr()) == 0 || nb::len(given.object) == 0) return {};
  if (!nb::isinstance<ReduceSpec>(nb::object(given.object[0]))) return {};
  if (!nb::try_cast(given.object, specs)) throw nb::type_error("specs: expected ReduceSpecs only");
  return specs;
}

Plan plan(const Ops& self, ReduceOp op, PlannedLike planned, bool in_place, Options options) {
  if (const auto specs = as_specs(planned))
    return waiting([&] { return self.plan(op, *specs, in_place, or_default(options)); });
  const std::vector<ValueDestination> pairs = read(PairsLike{planned.object});
  return waiting([&] { return self.plan(op, pairs, or_default(options)); });
}

// Of a Collective or a CollectiveSpec.
template <class Call>
Plan plan_call(const Ops& self, const Call& call, Options options) {
  return waiting([&] { return self.plan(call, or_default(options)); });
}

std::string explain(const Ops& self, ReduceOp op, PlannedLike planned, bool in_place, Options options) {
  if (const auto specs = as_specs(planned))
    return waiting([&] { return self.explain(op, *specs, in_place, or_default(options)); });
  const std::vector<ValueDestination> pairs = read(PairsLike{planned.object});
  return waiting([&] { return self.explain(op, pairs, or_default(options)); });
}

template <class Call>
std::string explain_call(const Ops& self, const Call& call, Options options) {
  return waiting([&] { return self.explain(call, or_default(options)); });
}

void bind_plan_of(nb::class_<Ops>& type) {
  type.def("plan", &plan, nb::arg("op"), nb::arg("pairs"), nb::arg("in_place") = false,
           nb::arg("options").none() = nb::none(),
           R"(What a call would do, without doing it: of pairs, or of ReduceSpecs, which need no memory.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).order
'canonical'
)")
      .def("plan", &plan_call<Collective>, nb::arg("call"), nb::arg("options").none() = nb::none(),
           R"(The same of a Collective.

>>> call = onesum.Collective.all_gather([[np.ones(2), np.ones(2)]], [np.empty(4)])
>>> onesum.ReductionToOneDevice().plan(call).verify()
)")
      .def("plan", &plan_call<CollectiveSpec>, nb::arg("spec"), nb::arg("options").none() = nb::none(),
           R"(The same of a CollectiveSpec, which needs no memory.

>>> tensor = onesum.ReduceSpec("float32", 6, ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
>>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.REDUCE_SCATTER, tensor)
>>> onesum.ReductionToOneDevice().plan(spec).verify()
)");
}

void bind_explain_of(nb::class_<Ops>& type) {
  type.def("explain", &explain, nb::arg("op"), nb::arg("pairs"), nb::arg("in_place") = false,
           nb::arg("options").none() = nb::none(), R"(Why, in words.

>>> ops = onesum.AllReduceCrossDeviceOps("auto")
>>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
>>> print(ops.explain(onesum.ReduceOp.SUM, [(value, value)]))  # doctest: +ELLIPSIS
1 tensor...
)")
      .def("explain", &explain_call<Collective>, nb::arg("call"), nb::arg("options").none() = nb::none(),
           R"(The same of a Collective.

>>> call = onesum.Collective.all_gather([[np.ones(2), np.ones(2)]], [np.empty(4)])
>>> print(onesum.ReductionToOneDevice().explain(call))  # doctest: +ELLIPSIS
1 tensor...
)")
      .def("explain", &explain_call<CollectiveSpec>, nb::arg("spec"), nb::arg("options").none() = nb::none(),
           R"(The same of a CollectiveSpec.

>>> tensor = onesum.ReduceSpec("float32", 6, ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
>>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.ALL_TO_ALL, tensor)
>>> print(onesum.ReductionToOneDevice().explain(spec))  # doctest: +ELLIPSIS
1 tensor...
)");
}

}  // namespace

void bind_planning(nb::class_<Ops>& type) {
  bind_plan_of(type);
  bind_explain_of(type);
}

}  // namespace onesum::python
