// Collectives as values: what is to be done with which arrays.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <onesum/collective.h>

#include "bindings.h"
#include "read.h"

namespace onesum::python {
namespace {

void bind_kind(nb::module_& module) {
  nb::enum_<CollectiveKind>(module, "CollectiveKind", R"(What a Collective does.

>>> onesum.Collective.broadcast([np.ones(2)], [[np.zeros(2), np.zeros(2)]]).kind
CollectiveKind.BROADCAST
)")
      .value("REDUCE", CollectiveKind::kReduce, "Every result gets the sum (or mean, …) of all replicas.")
      .value("BROADCAST", CollectiveKind::kBroadcast, "Every result gets the root's replica.")
      .value("REDUCE_SCATTER", CollectiveKind::kReduceScatter,
             "The sum of all replicas is shared out: every result gets the next part of it.")
      .value("ALL_GATHER", CollectiveKind::kAllGather, "Every result gets all replicas, one after the other.")
      .value("SCATTER", CollectiveKind::kScatter,
             "The root's replica is shared out: every result gets the next part of it.")
      .value("ALL_TO_ALL", CollectiveKind::kAllToAll,
             "Every replica is shared out: every result gets its part of each, one after the other.");
  module.def(
      "to_string", [](CollectiveKind kind) { return to_string(kind); }, nb::arg("kind"),
      ">>> onesum.to_string(onesum.CollectiveKind.ALL_TO_ALL)\n'all_to_all'\n");
  module.def(
      "parse_collective_kind", [](std::string_view text) { return parse_collective_kind(text); },
      nb::arg("text"), R"(The kind of a name: "reduce", "reduce_scatter", ….

>>> onesum.parse_collective_kind("all_gather")
CollectiveKind.ALL_GATHER
)");
}

// The arguments that all kinds have.
struct Memory {
  std::vector<PerReplica> values;
  std::vector<PerReplica> results;

  Memory(PerReplicasLike given, PerReplicasLike into)
      : values(read(given, Access::kRead, "values")), results(read(into, Access::kWrite, "results")) {}
};

void bind_sums(nb::class_<Collective>& type) {
  type.def_static(
          "reduce",
          [](ReduceOp op, PerReplicasLike values, PerReplicasLike results, int receiver) {
            Memory memory(values, results);
            Collective call = Collective::reduce(op, std::move(memory.values), std::move(memory.results));
            call.receiver = receiver;
            return call;
          },
          nb::arg("op"), nb::arg("values"), nb::arg("results"), nb::kw_only(), nb::arg("receiver") = -1,
          R"(Every result gets the sum (or mean, …) of all replicas.

>>> a, b, largest = np.array([1, 5]), np.array([3, 2]), np.zeros(2, int)
>>> call = onesum.Collective.reduce(onesum.ReduceOp.MAX, [[a, b]], [largest])
>>> onesum.ReductionToOneDevice().run(call)
>>> largest
array([3, 5])
)")
      .def_static(
          "reduce_scatter",
          [](ReduceOp op, PerReplicasLike values, PerReplicasLike results, bool has_equal_parts) {
            Memory memory(values, results);
            Collective call =
                Collective::reduce_scatter(op, std::move(memory.values), std::move(memory.results));
            call.has_equal_parts = has_equal_parts;
            return call;
          },
          nb::arg("op"), nb::arg("values"), nb::arg("results"), nb::kw_only(),
          nb::arg("has_equal_parts") = false,
          R"(The sum of all replicas is shared out; the parts are as large as the results.

>>> values, first, rest = [np.arange(3), np.arange(3)], np.zeros(1, int), np.zeros(2, int)
>>> call = onesum.Collective.reduce_scatter(onesum.ReduceOp.SUM, [values], [[first, rest]])
>>> onesum.ReductionToOneDevice().run(call)
>>> first, rest
(array([0]), array([2, 4]))
)");
}

void bind_copies_of_one(nb::class_<Collective>& type) {
  type.def_static(
          "broadcast",
          [](PerReplicasLike values, PerReplicasLike results, int root) {
            Memory memory(values, results);
            return Collective::broadcast(std::move(memory.values), std::move(memory.results), root);
          },
          nb::arg("values"), nb::arg("results"), nb::arg("root") = 0,
          R"(Every result gets the root's replica. The root is a worker, which has one replica.

>>> a, b = np.zeros(2), np.zeros(2)
>>> onesum.ReductionToOneDevice().run(onesum.Collective.broadcast([np.ones(2)], [[a, b]]))
>>> a, b
(array([1., 1.]), array([1., 1.]))
)")
      .def_static(
          "scatter",
          [](PerReplicasLike values, PerReplicasLike results, int root, bool has_equal_parts) {
            Memory memory(values, results);
            Collective call = Collective::scatter(std::move(memory.values), std::move(memory.results), root);
            call.has_equal_parts = has_equal_parts;
            return call;
          },
          nb::arg("values"), nb::arg("results"), nb::arg("root") = 0, nb::kw_only(),
          nb::arg("has_equal_parts") = false,
          R"(The root's replica is shared out; the parts are as large as the results.

>>> first, rest = np.zeros(1), np.zeros(2)
>>> onesum.ReductionToOneDevice().run(onesum.Collective.scatter([np.arange(3.0)], [[first, rest]]))
>>> first, rest
(array([0.]), array([1., 2.]))
)");
}

void bind_copies_of_all(nb::class_<Collective>& type) {
  type.def_static(
          "all_gather",
          [](PerReplicasLike values, PerReplicasLike results, bool has_equal_parts, int receiver) {
            Memory memory(values, results);
            Collective call = Collective::all_gather(std::move(memory.values), std::move(memory.results));
            call.has_equal_parts = has_equal_parts;
            call.receiver = receiver;
            return call;
          },
          nb::arg("values"), nb::arg("results"), nb::kw_only(), nb::arg("has_equal_parts") = false,
          nb::arg("receiver") = -1,
          R"(Every result gets all replicas, one after the other.

>>> a, b, whole = np.zeros(1), np.ones(2), np.empty(3)
>>> onesum.ReductionToOneDevice().run(onesum.Collective.all_gather([[a, b]], [whole]))
>>> whole
array([0., 1., 1.])
)")
      .def_static(
          "all_to_all",
          [](PerReplicasLike values, PerReplicasLike results, SplitsLike splits, bool has_equal_parts) {
            Memory memory(values, results);
            Collective call =
                Collective::all_to_all(std::move(memory.values), std::move(memory.results), read(splits));
            call.has_equal_parts = has_equal_parts;
            return call;
          },
          nb::arg("values"), nb::arg("results"), nb::arg("splits") = nb::tuple(), nb::kw_only(),
          nb::arg("has_equal_parts") = false,
          R"(Every replica is shared out, each result gets its part of each: equal parts, or as `splits` say.

splits  of each replica of this process, how many elements each result gets; of one tensor only

>>> values, a, b = [np.array([1, 2, 3]), np.array([4, 5])], np.zeros(2, int), np.zeros(3, int)
>>> call = onesum.Collective.all_to_all([values], [[a, b]], splits=[[1, 2], [1, 1]])
>>> onesum.ReductionToOneDevice().run(call)
>>> a, b
(array([1, 4]), array([2, 3, 5]))
)");
}

void bind_fields(nb::class_<Collective>& type) {
  type.def_ro("kind", &Collective::kind)
      .def_ro("op", &Collective::op, "Of REDUCE and REDUCE_SCATTER.")
      .def_ro("root", &Collective::root, "Of BROADCAST and SCATTER: the worker whose value counts.")
      .def_ro("values", &Collective::values)
      .def_ro("results", &Collective::results)
      .def_ro("splits", &Collective::splits, "Of ALL_TO_ALL; empty: equal parts.")
      .def_ro("has_equal_parts", &Collective::has_equal_parts)
      .def_ro("receiver", &Collective::receiver, "Of REDUCE and ALL_GATHER; -1: whoever passes memory.")
      .def("__repr__", [](const Collective& self) {
        return "Collective." + std::string(to_string(self.kind)) + "(" + std::to_string(self.values.size()) +
               " tensors)";
      });
}

void bind_spec(nb::module_& module) {
  nb::class_<CollectiveSpec>(module, "CollectiveSpec", R"(A Collective without the memory: for planning.

What is shared out is shared out as equally as can be. `root` counts the replicas of the tensor.

>>> tensor = onesum.ReduceSpec("float32", (1024,), ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
>>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.ALL_GATHER, tensor)
>>> onesum.ReductionToOneDevice().plan(spec).pack_elements
[1024, 1024]
)")
      .def(
          "__init__",
          [](CollectiveSpec* self, CollectiveKind kind, const ReduceSpec& tensor, ReduceOp op, int root) {
            new (self) CollectiveSpec{kind, op, root, tensor};
          },
          nb::arg("kind"), nb::arg("tensor"), nb::kw_only(), nb::arg("op") = ReduceOp::kSum,
          nb::arg("root") = 0)
      .def_ro("kind", &CollectiveSpec::kind)
      .def_ro("op", &CollectiveSpec::op)
      .def_ro("root", &CollectiveSpec::root)
      .def_ro("tensor", &CollectiveSpec::tensor);
}

}  // namespace

void bind_collective(nb::module_& module) {
  bind_kind(module);
  nb::class_<Collective> type(module, "Collective",
                              R"(What is to be done with which arrays; CrossDeviceOps.run does it.

values[i] has this process's replicas of tensor i, results[i] the arrays of its results; one alone may be given
as it is. Replicas and results count over all workers in rank order. A worker that brings nothing, or gets
nothing, passes `PerReplica()` there. Where parts are handed out, numbers of elements must fit and shapes need
not. A result may be exactly the memory that it takes the place of; any other overlap is refused.

has_equal_parts  a promise of all workers that everyone's parts are equally large, which saves asking
receiver         the only worker that passes arrays for results; -1: whoever passes some

>>> a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
>>> call = onesum.Collective.reduce_scatter(onesum.ReduceOp.SUM, [[a, b]], [[a[:1], b[1:]]])
>>> onesum.ReductionToOneDevice().run(call)
>>> a, b
(array([4., 2.]), array([3., 6.]))
)");
  bind_sums(type);
  bind_copies_of_one(type);
  bind_copies_of_all(type);
  bind_fields(type);
  bind_spec(module);
}

}  // namespace onesum::python
