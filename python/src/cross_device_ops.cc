// CrossDeviceOps and its calls.
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <onesum/cross_device_ops.h>

#include "bindings.h"
#include "call_options.h"
#include "callbacks.h"
#include "planning.h"
#include "prepared.h"
#include "read.h"
#include "waiting.h"
#include "works.h"

namespace onesum::python {
namespace {

using Ops = CrossDeviceOps;

Mirrored reduce(Ops& self, ReduceOp op, PerReplicaLike value, DestinationLike destination, Options options) {
  const PerReplica replicas = read(value, Access::kRead, "value");
  const Destination where = read(destination);
  return waiting([&] { return self.reduce(op, replicas, where, or_default(options)); });
}

std::vector<Mirrored> batch_reduce(Ops& self, ReduceOp op, PairsLike pairs, Options options) {
  const std::vector<ValueDestination> all = read(pairs);
  return waiting([&] { return self.batch_reduce(op, all, or_default(options)); });
}

Mirrored broadcast(Ops& self, ValueLike value, DestinationLike destination, int root) {
  const Value given = read(value, cpu(0), Access::kRead, "value");
  const Destination where = read(destination);
  return waiting([&] { return self.broadcast(given, where, root); });
}

Mirrored gather(Ops& self, PerReplicaLike value, DestinationLike destination, int axis, Options options) {
  const PerReplica replicas = read(value, Access::kRead, "value");
  const Destination where = read(destination);
  return waiting([&] { return self.gather(replicas, where, axis, or_default(options)); });
}

void batch_reduce_into(Ops& self, ReduceOp op, PerReplicasLike values, PerReplicasLike results,
                       Options options) {
  const std::vector<PerReplica> given = read(values, Access::kRead, "values");
  std::vector<PerReplica> into = read(results, Access::kWrite, "results");
  waiting([&] { self.batch_reduce_into(op, given, into, or_default(options)); });
}

void reduce_into(Ops& self, ReduceOp op, PerReplicaLike value, PerReplicaLike result, Options options) {
  const PerReplica given = read(value, Access::kRead, "value");
  PerReplica into = read(result, Access::kWrite, "result");
  waiting(
      [&] { self.batch_reduce_into(op, std::span(&given, 1), std::span(&into, 1), or_default(options)); });
}

std::shared_ptr<PendingWork> batch_reduce_async(Ops& self, ReduceOp op, PairsLike pairs, Options options) {
  const std::vector<ValueDestination> all = read(pairs);
  Work work = waiting([&] { return self.batch_reduce_async(op, all, or_default(options)); });
  return pending(std::move(work), self.cluster());
}

Prepared prepare(Ops& self, ReduceOp op, PerReplicasLike values, PerReplicasLike results, Options options) {
  const std::vector<PerReplica> given = read(values, Access::kRead, "values");
  std::vector<PerReplica> into = read(results, Access::kWrite, "results");
  return {waiting([&] { return self.prepare(op, given, into, or_default(options)); }), self.cluster()};
}

void run(Ops& self, const Collective& call, Options options) {
  waiting([&] { self.run(call, or_default(options)); });
}

std::shared_ptr<PendingWork> start(Ops& self, const Collective& call, Options options) {
  Work work = waiting([&] { return self.start(call, or_default(options)); });
  return pending(std::move(work), self.cluster());
}

Prepared prepare_call(Ops& self, const Collective& call, Options options) {
  return {waiting([&] { return self.prepare(call, or_default(options)); }), self.cluster()};
}

void bind_report(nb::module_& module) {
  nb::class_<CallReport>(module, "CallReport", R"(What one call did.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.last_call.number
0
>>> ops.reduce(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)], "CPU:0").numpy()
array([2., 2.])
>>> ops.last_call.algorithm, ops.last_call.bytes
('one_device', 16)
)")
      .def_ro("number", &CallReport::number, "Of the call on its object, from 1; 0: none yet.")
      .def_ro("algorithm", &CallReport::algorithm)
      .def_ro("tensors", &CallReport::tensors)
      .def_ro("bytes", &CallReport::bytes, "Of one replica of everything that was reduced.")
      .def_ro("time", &CallReport::time)
      .def_ro("waited", &CallReport::waited, "Of that, how long this worker waited for others.")
      .def_ro("waited_for", &CallReport::waited_for, "The rank that it waited for longest; -1: nobody.")
      .def("__repr__", [](const CallReport& self) {
        return "CallReport(number=" + std::to_string(self.number) + ", algorithm='" + self.algorithm +
               "', tensors=" + std::to_string(self.tensors) + ", bytes=" + std::to_string(self.bytes) + ")";
      });
}

void bind_reductions(nb::class_<Ops>& type) {
  type.def(
          "reduce", &reduce, nb::arg("op"), nb::arg("value"), nb::arg("destination"),
          nb::arg("options").none() = nb::none(),
          R"(The sum or mean (or what else the operation is) of all replicas, on every device of the destination.

value        the replicas: a list of arrays (on CPU:0, CPU:1, …), a PerReplica, a variable
destination  where results go: a device such as "CPU:0", or a value or variable, on whose devices they are then

>>> ops = onesum.ReductionToOneDevice()
>>> value = onesum.PerReplica([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
>>> ops.reduce(onesum.ReduceOp.MEAN, value, "CPU:0").numpy()
array([2., 3.])
)")
      .def("batch_reduce", &batch_reduce, nb::arg("op"), nb::arg("pairs"),
           nb::arg("options").none() = nb::none(),
           R"(The same for many values at once; results in the order of the pairs (value, destination).

>>> ops = onesum.ReductionToOneDevice()
>>> pairs = [([np.ones(2), np.ones(2)], "CPU:0"), ([np.arange(3), np.arange(3)], "CPU:1")]
>>> [result.numpy().tolist() for result in ops.batch_reduce(onesum.ReduceOp.SUM, pairs)]
[[2.0, 2.0], [0, 2, 4]]
)")
      .def("broadcast", &broadcast, nb::arg("value"), nb::arg("destination"), nb::arg("root") = 0,
           R"(Copies of the root's value on every device of the destination.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.broadcast(np.arange(3), "CPU:1").tensor()
Tensor(int64[3] on /job:localhost/replica:0/task:0/device:CPU:1)
)")
      .def("gather", &gather, nb::arg("value"), nb::arg("destination"), nb::arg("axis"),
           nb::arg("options").none() = nb::none(), R"(All replicas concatenated along `axis` in replica order.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.gather([np.zeros(1), np.ones(2)], "CPU:0", axis=0).numpy()
array([0., 1., 1.])
)")
      .def("reduce_into", &reduce_into, nb::arg("op"), nb::arg("value"), nb::arg("result"),
           nb::arg("options").none() = nb::none(),
           R"(A reduction into arrays the caller has, which may be the value.

>>> a, b = np.ones(2), np.ones(2)
>>> onesum.ReductionToOneDevice().reduce_into(onesum.ReduceOp.SUM, [a, b], [a, b])
>>> a, b
(array([2., 2.]), array([2., 2.]))
)")
      .def("batch_reduce_into", &batch_reduce_into, nb::arg("op"), nb::arg("values"), nb::arg("results"),
           nb::arg("options").none() = nb::none(),
           R"(The same for many. results[i] has an array for each destination device.

>>> a, b, total = np.ones(2), np.ones(2), np.zeros(2)
>>> onesum.ReductionToOneDevice().batch_reduce_into(onesum.ReduceOp.SUM, [[a, b]], [[total]])
>>> total
array([2., 2.])
)")
      .def("batch_reduce_async", &batch_reduce_async, nb::arg("op"), nb::arg("pairs"),
           nb::arg("options").none() = nb::none(), R"(batch_reduce without waiting. Works run in call order.

>>> ops = onesum.ReductionToOneDevice()
>>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> work.results()[0].numpy()
array([2., 2.])
)")
      .def("prepare", &prepare, nb::arg("op"), nb::arg("values"), nb::arg("results"),
           nb::arg("options").none() = nb::none(),
           R"(batch_reduce_into, validated and planned once, to run again and again on the same arrays.

>>> a, b = np.ones(2), np.ones(2)
>>> onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).run()
>>> a
array([2., 2.])
)");
}

void bind_collectives(nb::class_<Ops>& type) {
  type.def("run", &run, nb::arg("call"), nb::arg("options").none() = nb::none(),
           R"(A Collective, into arrays the caller has.

>>> a, b, whole = np.zeros(1), np.ones(2), np.empty(3)
>>> onesum.ReductionToOneDevice().run(onesum.Collective.all_gather([[a, b]], [whole]))
>>> whole
array([0., 1., 1.])
)")
      .def("start", &start, nb::arg("call"), nb::arg("options").none() = nb::none(),
           R"(The same without waiting. Works run in call order.

>>> a, b = np.zeros(2), np.zeros(2)
>>> work = onesum.ReductionToOneDevice().start(onesum.Collective.broadcast([np.ones(2)], [[a, b]]))
>>> work.wait()
>>> b
array([1., 1.])
)")
      .def("prepare", &prepare_call, nb::arg("call"), nb::arg("options").none() = nb::none(),
           R"(A Collective, validated and planned once, to run again and again on the same arrays.

>>> a, b = np.ones(2), np.zeros(2)
>>> prepared = onesum.ReductionToOneDevice().prepare(onesum.Collective.broadcast([a], [b]))
>>> prepared.run(); a[0] = 7; prepared.run()
>>> b
array([7., 1.])
)");
}

}  // namespace

void bind_cross_device_ops(nb::module_& module) {
  bind_report(module);
  nb::class_<Ops> type(module, "CrossDeviceOps", nb::is_weak_referenceable(),
                       R"(Reductions and other collectives across the devices of a cluster.

The classes differ in their policy. Inputs are never modified, except where they are passed as results. Objects
may be used from several threads; calls on one cluster run one after the other. Calls release the GIL, and
Ctrl-C ends those that wait for other workers.

>>> isinstance(onesum.NcclAllReduce(), onesum.CrossDeviceOps)
True
)");
  bind_reductions(type);
  bind_collectives(type);
  bind_planning(type);
  type.def_prop_ro("last_call", &Ops::last_call, "The last call that completed on this object.")
      .def_prop_ro("cluster", [](const Ops& self) { return self.cluster(); });

  nb::class_<OneDevice, Ops>(module, "ReductionToOneDevice", nb::type_slots(one_device_slots),
                             R"(Sums on one device, then copies.

reduce_to_device  where the sum is formed; None: the first device of each destination
accumulation_fn   gets the components of a dense value, in replica order, and returns their sum

>>> def largest(tensors):
...     return np.max([tensor.numpy() for tensor in tensors], axis=0)
>>> ops = onesum.ReductionToOneDevice(accumulation_fn=largest)
>>> ops.reduce(onesum.ReduceOp.SUM, [np.array([1.0, 5.0]), np.array([3.0, 2.0])], "CPU:0").numpy()
array([3., 5.])
)")
      .def(
          "__init__",
          [](OneDevice* self, const std::optional<std::string>& reduce_to_device,
             AccumulationLike accumulation_fn, const std::optional<Cluster>& cluster) {
            new (self) OneDevice(reduce_to_device, read(accumulation_fn), cluster);
          },
          nb::arg("reduce_to_device") = nb::none(), nb::arg("accumulation_fn").none() = nb::none(),
          nb::arg("cluster") = nb::none(),
          nb::sig("def __init__(self, reduce_to_device: str | None = None, "
                  "accumulation_fn: onesum.typing.AccumulationFn | None = None, "
                  "cluster: Cluster | None = None) -> None"));
}

}  // namespace onesum::python
