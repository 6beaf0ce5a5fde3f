// The classes that all-reduce, and their specs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <onesum/all_reduce.h>

#include "bindings.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

void bind_specs(nb::module_& module) {
  nb::class_<AllReduceSpec>(module, "AllReduceSpec", R"(One line of a list: tensors of at most `limit` bytes.

Tuples are taken wherever one is.

>>> onesum.AllReduceSpec("pscpu/pscpu", 2, -1)
AllReduceSpec('pscpu/pscpu', 2, -1)
)")
      .def(
          "__init__",
          [](AllReduceSpec* self, std::string alg, int shards, std::int64_t limit) {
            new (self) AllReduceSpec{std::move(alg), shards, limit};
          },
          nb::arg("alg"), nb::arg("shards") = 1, nb::arg("limit") = -1)
      .def_ro("alg", &AllReduceSpec::alg)
      .def_ro("shards", &AllReduceSpec::shards)
      .def_ro("limit", &AllReduceSpec::limit)
      .def(
          "__eq__",
          [](const AllReduceSpec& self, nb::handle other) {
            return nb::isinstance<AllReduceSpec>(other) && self == *nb::inst_ptr<AllReduceSpec>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const AllReduceSpec& self) {
             return nb::hash(nb::make_tuple(self.alg, self.shards, self.limit));
           })
      .def("__repr__", [](const AllReduceSpec& self) {
        return "AllReduceSpec('" + self.alg + "', " + std::to_string(self.shards) + ", " +
               std::to_string(self.limit) + ")";
      });
  nb::class_<AllReduceSpecs>(module, "AllReduceSpecs", R"(Which algorithm takes which tensors, always valid.

Text, one (algorithm, shards, limit) or a sequence of these are taken wherever one is.

>>> print(onesum.AllReduceSpecs([("nccl", 2, 1024), ("pscpu/pscpu", 2, -1)]))
nccl#2:1k:pscpu/pscpu#2
>>> onesum.AllReduceSpecs("pscpu:2k:xring").values[0].limit
2048
)")
      .def(
          "__init__", [](AllReduceSpecs* self, SpecsLike specs) { new (self) AllReduceSpecs(read(specs)); },
          nb::arg("specs"))
      .def_prop_ro("values",
                   [](const AllReduceSpecs& self) {
                     return std::vector<AllReduceSpec>(self.values().begin(), self.values().end());
                   })
      .def("to_string", &AllReduceSpecs::to_string,
           "The text, which reads back.\n\n>>> onesum.AllReduceSpecs(\"xring\").to_string()\n'xring'\n")
      .def("__str__", &AllReduceSpecs::to_string)
      .def("__repr__",
           [](const AllReduceSpecs& self) { return "AllReduceSpecs('" + self.to_string() + "')"; })
      .def(
          "__eq__",
          [](const AllReduceSpecs& self, nb::handle other) {
            return nb::isinstance<AllReduceSpecs>(other) && self == *nb::inst_ptr<AllReduceSpecs>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const AllReduceSpecs& self) { return nb::hash(nb::cast(self.to_string())); });
}

void bind_one_algorithm(nb::module_& module) {
  nb::class_<AllReduceCrossDeviceOps, CrossDeviceOps>(module, "AllReduceCrossDeviceOps",
                                                      R"(One algorithm for all tensors.

all_reduce_alg             "nccl", "hierarchical_copy", "xring", "nccl/rechd", "auto", …
num_packs                  the dense tensors of a batch are cut into so many packs; 0: none of this
agg_small_grads_max_bytes  tensors up to this are grouped,
agg_small_grads_max_group  at most so many to a pack

>>> ops = onesum.AllReduceCrossDeviceOps("xring")
>>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
>>> ops.reduce(onesum.ReduceOp.SUM, value, value).tensor(1).numpy()
array([2., 2.])
)")
      .def(nb::init<const std::string&, int, std::int64_t, int, const std::optional<Cluster>&>(),
           nb::arg("all_reduce_alg") = "nccl", nb::arg("num_packs") = 1,
           nb::arg("agg_small_grads_max_bytes") = 0, nb::arg("agg_small_grads_max_group") = 10,
           nb::arg("cluster") = nb::none());
  nb::class_<NcclAllReduce, AllReduceCrossDeviceOps>(module, "NcclAllReduce",
                                                     R"(NCCL where it serves the devices.

>>> onesum.NcclAllReduce(num_packs=2).cluster.size
1
)")
      .def(nb::init<int, const std::optional<Cluster>&>(), nb::arg("num_packs") = 1,
           nb::arg("cluster") = nb::none());
  nb::class_<HierarchicalCopyAllReduce, AllReduceCrossDeviceOps>(
      module, "HierarchicalCopyAllReduce",
      R"(Sums in two halves of the devices, then across.

>>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
>>> onesum.HierarchicalCopyAllReduce().reduce(onesum.ReduceOp.SUM, value, value).tensor(0).numpy()
array([2., 2.])
)")
      .def(nb::init<int, const std::optional<Cluster>&>(), nb::arg("num_packs") = 1,
           nb::arg("cluster") = nb::none());
}

}  // namespace

void bind_all_reduce(nb::module_& module) {
  bind_specs(module);
  bind_one_algorithm(module);
  nb::class_<MultiWorkerAllReduce, AllReduceCrossDeviceOps>(
      module, "MultiWorkerAllReduce",
      R"(Algorithms by the size of tensors, over several workers.

worker_devices       "/job:worker/task:0", … all different, in rank order
num_gpus_per_worker  devices of each worker, of the type that values are on; 0: one CPU
all_reduce_spec      text, a line or a sequence of lines: which algorithm takes which tensors
cluster              its workers must be just these; None: the environment's, or they are in this process

>>> workers = ["/job:worker/task:0", "/job:worker/task:1"]
>>> ops = onesum.MultiWorkerAllReduce(workers, 1, all_reduce_spec=("pscpu/pscpu", 2, -1), num_packs=0)
>>> value = onesum.PerReplica([np.ones(2), np.ones(2)], [worker + "/device:CPU:0" for worker in workers])
>>> ops.reduce(onesum.ReduceOp.SUM, value, value).tensor(0).numpy()
array([2., 2.])
)")
      .def(
          "__init__",
          [](MultiWorkerAllReduce* self, DevicesLike worker_devices, int num_gpus_per_worker,
             SpecsLike all_reduce_spec, int num_packs, std::int64_t agg_small_grads_max_bytes,
             int agg_small_grads_max_group, const std::optional<Cluster>& cluster) {
            const std::vector<std::string> workers = read_names(worker_devices, "worker_devices");
            const AllReduceSpecs specs = read(all_reduce_spec);
            waiting([&] {
              new (self) MultiWorkerAllReduce(workers, num_gpus_per_worker, specs, num_packs,
                                              agg_small_grads_max_bytes, agg_small_grads_max_group, cluster);
            });
          },
          nb::arg("worker_devices"), nb::arg("num_gpus_per_worker"),
          nb::arg("all_reduce_spec") = nb::make_tuple("pscpu/pscpu", 2, -1), nb::arg("num_packs") = 0,
          nb::arg("agg_small_grads_max_bytes") = 0, nb::arg("agg_small_grads_max_group") = 10,
          nb::arg("cluster") = nb::none());
}

}  // namespace onesum::python
