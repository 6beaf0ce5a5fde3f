// MirroredStrategy and its replicas.
#include <memory>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <onesum/strategy.h>

#include "bindings.h"
#include "call_options.h"
#include "callbacks.h"
#include "read.h"
#include "replicas.h"
#include "waiting.h"

namespace onesum::python {
namespace {

// A scope as a context manager. The strategy outlives it.
struct Scope {
  nb::object strategy;
  std::unique_ptr<StrategyScope> entered;
};

// A strategy's calls in cross-replica context, which keep the strategy.
struct Extended {
  nb::object strategy;
  StrategyExtended calls() const { return nb::cast<MirroredStrategy&>(strategy).extended(); }
};

void bind_extended(nb::module_& module) {
  nb::class_<Extended>(module, "StrategyExtended",
                       R"(Reductions and broadcasts of a strategy, in cross-replica context.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> strategy.extended.reduce_to(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)], "CPU:0").numpy()
array([2., 2.])
)")
      .def(
          "reduce_to",
          [](const Extended& self, ReduceOp op, PerReplicaLike value, DestinationLike destination,
             Options options) {
            const PerReplica replicas = read(value, Access::kRead, "value");
            const Destination where = read(destination);
            return waiting([&] { return self.calls().reduce_to(op, replicas, where, or_default(options)); });
          },
          nb::arg("op"), nb::arg("value"), nb::arg("destination"), nb::arg("options").none() = nb::none(),
          R"(CrossDeviceOps.reduce.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> strategy.extended.reduce_to(onesum.ReduceOp.MEAN, [np.ones(2), np.ones(2)], "CPU:1").numpy()
array([1., 1.])
)")
      .def(
          "batch_reduce_to",
          [](const Extended& self, ReduceOp op, PairsLike pairs, Options options) {
            const std::vector<ValueDestination> all = read(pairs);
            return waiting([&] { return self.calls().batch_reduce_to(op, all, or_default(options)); });
          },
          nb::arg("op"), nb::arg("pairs"), nb::arg("options").none() = nb::none(),
          R"(CrossDeviceOps.batch_reduce.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> pairs = [([np.ones(2), np.ones(2)], "CPU:0")]
>>> strategy.extended.batch_reduce_to(onesum.ReduceOp.SUM, pairs)[0].numpy()
array([2., 2.])
)")
      .def(
          "broadcast_to",
          [](const Extended& self, ValueLike value, DestinationLike destination) {
            const Value given = read(value, cpu(0), Access::kRead, "value");
            const Destination where = read(destination);
            return waiting([&] { return self.calls().broadcast_to(given, where); });
          },
          nb::arg("value"), nb::arg("destination"), R"(CrossDeviceOps.broadcast.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> strategy.extended.broadcast_to(np.ones(2), "CPU:1").numpy()
array([1., 1.])
)");
}

void bind_scope(nb::module_& module) {
  nb::class_<Scope>(module, "StrategyScope", R"(The life of a strategy's scope, for `with`.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> with strategy.scope() as same:
...     same is strategy
True
)")
      .def(
          "__enter__",
          [](Scope& self) {
            if (self.entered) throw nb::value_error("this scope was entered before; call scope() again");
            const auto* const strategy = nb::inst_ptr<MirroredStrategy>(self.strategy);
            // A scope cannot be moved. NOLINTNEXTLINE(modernize-make-unique)
            self.entered.reset(new StrategyScope(strategy->scope()));
            return self.strategy;
          },
          nb::sig("def __enter__(self) -> MirroredStrategy"))
      .def(
          "__exit__", [](Scope& self, const nb::args&) { self.entered.reset(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace

void bind_strategy(nb::module_& module) {
  bind_replicas(module);
  bind_extended(module);
  bind_scope(module);
  nb::class_<MirroredStrategy>(module, "MirroredStrategy", nb::type_slots(strategy_slots),
                               nb::is_weak_referenceable(),
                               R"(One replica of the work per device, variables mirrored on all.

devices           one replica each, in this order; None: the GPUs, or a CPU device for each core
cross_device_ops  None: ReductionToOneDevice()

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"], onesum.HierarchicalCopyAllReduce())
>>> losses = strategy.run(lambda replica: np.array([float(replica.replica_id)]))
>>> strategy.reduce(onesum.ReduceOp.MEAN, losses).numpy()
array([0.5])
)")
      .def(
          "__init__",
          [](MirroredStrategy* self, std::optional<DevicesLike> devices,
             std::shared_ptr<CrossDeviceOps> cross_device_ops) {
            std::vector<std::string> names;
            if (devices) names = read_names(*devices, "devices");
            if (!cross_device_ops)
              cross_device_ops = std::make_shared<OneDevice>(std::nullopt, nullptr, std::nullopt);
            new (self) MirroredStrategy(std::move(names), std::move(cross_device_ops));
          },
          nb::arg("devices") = nb::none(), nb::arg("cross_device_ops").none() = nb::none())
      .def_prop_ro("num_replicas", &MirroredStrategy::num_replicas)
      .def_prop_ro("devices",
                   [](const MirroredStrategy& self) {
                     return std::vector<Device>(self.devices().begin(), self.devices().end());
                   })
      .def_prop_ro("cross_device_ops", &MirroredStrategy::cross_device_ops, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "extended", [](nb::object self) { return Extended{std::move(self)}; },
          nb::sig("def extended(self) -> StrategyExtended"))
      .def(
          "scope", [](nb::object self) { return Scope{std::move(self), {}}; },
          nb::sig("def scope(self) -> StrategyScope"),
          R"(Variables that this thread makes inside it are mirrored on the strategy's devices.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> with strategy.scope():
...     onesum.Variable("weights", np.zeros(2)).is_mirrored()
True
)")
      .def("run", &run_replicas, nb::arg("fn"),
           R"(Calls fn(replica) once per replica, each on a thread of its own.

What the replicas return (arrays are on their own devices) is a PerReplica; None if they return nothing. If some
raise, the error of the lowest one is raised.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> def step(replica):
...     return replica.all_reduce(onesum.ReduceOp.SUM, np.ones(2))
>>> strategy.run(step).tensor(1).numpy()
array([2., 2.])
)")
      .def(
          "reduce",
          [](MirroredStrategy& self, ReduceOp op, PerReplicaLike value, Options options) {
            const PerReplica replicas = read(value, Access::kRead, "value");
            return waiting([&] { return self.reduce(op, replicas, or_default(options)); });
          },
          nb::arg("op"), nb::arg("value"), nb::arg("options").none() = nb::none(),
          R"(The sum or mean of all replicas, on the host.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> strategy.reduce(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)]).numpy()
array([2., 2.])
)");
}

}  // namespace onesum::python
