// Who takes part in calls.
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <onesum/cluster.h>

#include "bindings.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

std::vector<Device> listed(std::span<const Device> devices) { return {devices.begin(), devices.end()}; }

void bind_making(nb::class_<Cluster>& type) {
  type.def_static(
          "local",
          [](DevicesLike devices) {
            if (devices.object.is_none()) return Cluster::local();
            return Cluster::local(read_names(devices, "devices"));
          },
          nb::arg("devices").none() = nb::none(),
          nb::sig("def local(devices: collections.abc.Sequence[onesum.typing.DeviceLike] | None = None) -> "
                  "Cluster"),
          R"(The named devices of this process; without names all of its CPUs.

>>> onesum.Cluster.local(["CPU:0", "CPU:1"]).devices[1].index
1
)")
      .def_static(
          "embedded",
          [](DevicesLike worker_devices, int devices_per_worker, std::string_view device_type) {
            return Cluster::embedded(read_names(worker_devices, "worker_devices"), devices_per_worker,
                                     device_type);
          },
          nb::arg("worker_devices"), nb::arg("devices_per_worker"), nb::arg("type") = "CPU",
          R"(Several workers inside this process.

>>> onesum.Cluster.embedded(["/job:worker/task:0", "/job:worker/task:1"], 2).size
2
)")
      .def_static(
          "from_environment", [] { return waiting([] { return Cluster::from_environment(); }); },
          R"(The workers that the launcher of this process has started; else this process alone.

Waits for all workers. Launchers: `onesum run`, TF_CONFIG, torchrun, Slurm, the MPIs.

>>> onesum.Cluster.from_environment().rank
0
)");
}

void bind_calls(nb::class_<Cluster>& type) {
  type.def(
          "barrier",
          [](Cluster& self, TimeoutLike timeout) {
            const auto longest = read_timeout(timeout);
            waiting([&] { self.barrier(longest); });
          },
          nb::arg("timeout").none() = nb::none(),
          nb::sig("def barrier(self, timeout: float | datetime.timedelta | None = None) -> None"),
          R"(Returns when all workers have called it, and all earlier calls on this cluster are done.

timeout  in seconds, or a timedelta; None: 30 minutes. Then DeadlineExceededError names who did not come.

>>> onesum.Cluster.local().barrier(timeout=10)
)")
      .def(
          "shrink",
          [](Cluster& self, TimeoutLike timeout) {
            const auto longest = read_timeout(timeout);
            return waiting([&] { return self.shrink(longest); });
          },
          nb::arg("timeout").none() = nb::none(),
          nb::sig("def shrink(self, timeout: float | datetime.timedelta | None = None) -> Cluster"),
          R"(Those who are left of the group, as a new cluster; the old one is over.

>>> onesum.Cluster.local().shrink(timeout=10).size
1
)")
      .def(
          "duplicate", [](Cluster& self) { return waiting([&] { return self.duplicate(); }); },
          R"(The same workers once more, with a sequence of calls of its own.

>>> onesum.Cluster.local().duplicate().size
1
)")
      .def(
          "split",
          [](Cluster& self, RanksLike ranks) {
            const std::vector<int> members = read(ranks);
            return waiting([&] { return self.split(members); });
          },
          nb::arg("ranks"), R"(A cluster of some of the workers; the first of the ranks becomes 0.

All workers call it, each with the ranks of the cluster that it will be in.

>>> workers = onesum.Cluster.embedded(["/job:worker/task:0", "/job:worker/task:1"], 1)
>>> str(workers.split([1]).workers[0])
'/job:worker/replica:0/task:1'
)")
      .def(
          "group",
          [](Cluster& self, RanksLike ranks, std::string_view name, TimeoutLike timeout) {
            const std::vector<int> members = read(ranks);
            const auto longest = read_timeout(timeout);
            return waiting([&] { return self.group(members, name, longest); });
          },
          nb::arg("ranks"), nb::arg("name"), nb::arg("timeout").none() = nb::none(),
          nb::sig("def group(self, ranks: collections.abc.Sequence[int], name: str, "
                  "timeout: float | datetime.timedelta | None = None) -> Cluster"),
          R"(The same without the others: only those of `ranks` call it, and wait for each other.

name     tells groups of the same workers apart that they make at the same time
timeout  in seconds, or a timedelta; None: 30 minutes

>>> workers = onesum.Cluster.embedded([f"/job:worker/task:{task}" for task in range(3)], 1)
>>> workers.group([2, 0], "the even ones").size
2
)")
      .def(
          "close",
          [](Cluster& self) {
            const nb::gil_scoped_release unlocked;
            self.close();
          },
          "Tells the other workers that this one has left; calls are refused from then on.\n\n"
          ">>> onesum.Cluster.local().close()\n")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Cluster"))
      .def(
          "__exit__",
          [](Cluster& self, const nb::args&) {
            const nb::gil_scoped_release unlocked;
            self.close();
          },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace

void bind_cluster(nb::module_& module) {
  nb::class_<Cluster> type(module, "Cluster", R"(Who takes part in calls.

Its workers are in this process, or processes of their own that make the same calls in the same order. Calls on a
cluster run one after the other. The first failure of a worker ends the group: every call on it raises an error
that names the worker. A `with` statement closes it.

>>> with onesum.Cluster.from_environment() as cluster:
...     ops = onesum.AllReduceCrossDeviceOps("auto", cluster=cluster)
...     cluster.rank, cluster.size
(0, 1)
)");
  bind_making(type);
  bind_calls(type);
  type.def_prop_ro("rank", &Cluster::rank)
      .def_prop_ro("size", &Cluster::size)
      .def_prop_ro("workers", [](const Cluster& self) { return listed(self.workers()); })
      .def_prop_ro("devices", [](const Cluster& self) { return listed(self.devices()); })
      .def_prop_ro("completed_calls", &Cluster::completed_calls)
      .def_prop_ro("completed_by_all", &Cluster::completed_by_all)
      .def_prop_ro(
          "_address", [](const Cluster& self) { return reinterpret_cast<std::uintptr_t>(&self); },
          "Of the C++ object, for bridges that are libraries of their own; good as long as this one.")
      .def("__repr__", [](const Cluster& self) {
        return "Cluster(rank " + std::to_string(self.rank()) + " of " + std::to_string(self.size()) + ")";
      });
}

}  // namespace onesum::python
