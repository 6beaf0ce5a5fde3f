#include "replicas.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <onesum/error.h>

#include "call_options.h"
#include "owners.h"
#include "python_error.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

namespace nb = nanobind;

// A replica's context while its function runs; Python may keep it longer.
struct Replica {
  ReplicaContext* context;

  ReplicaContext& checked() const {
    if (context == nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  "a ReplicaContext was used after its replica had returned from MirroredStrategy.run");
    }
    return *context;
  }
};

// Ctrl-C during a run: the main thread hears of it, the replicas have to end. Guarded by the GIL, but for the
// flag.
class Interrupt {
 public:
  void enter() { threads_.push_back(PyThread_get_thread_ident()); }
  void leave() { std::erase(threads_, PyThread_get_thread_ident()); }

  // On the main thread.
  void check_signals_for_all() {
    try {
      check_signals();
    } catch (const PythonError& error) {
      const nb::gil_scoped_acquire gil;
      reason_ = error;
      has_come_.store(true, std::memory_order_release);  // pairs with check_flag: the reason is there
      for (const unsigned long thread : threads_) PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
      throw;
    }
  }
  // On a replica's.
  void check_flag() const {
    if (has_come_.load(std::memory_order_acquire)) throw PythonError(*reason_);
  }

 private:
  std::vector<unsigned long> threads_;
  std::optional<PythonError> reason_;
  std::atomic<bool> has_come_ = false;
};

// Without the GIL; the interrupt check of the replica's thread stays in force.
template <class Fn>
auto without_gil(Fn&& fn) {
  const nb::gil_scoped_release unlocked;
  return fn();
}

// Where a function returned nothing, so that the others' results can be looked at.
Value placeholder(const Device& device) { return Tensor::empty(DType::kUInt8, Shape({0}), device); }

struct Run {
  std::shared_ptr<PyObject> fn;
  Interrupt interrupt;
  std::vector<char> returned;  // by replica: whether a value

  Value call(ReplicaContext& context) {
    const CallbackTurn turn;
    const nb::object replica = nb::cast(Replica{&context});
    interrupt.enter();
    struct Leaving {
      Run& run;
      nb::handle replica;
      ~Leaving() {
        run.interrupt.leave();
        nb::inst_ptr<Replica>(replica)->context = nullptr;
      }
    } const leaving{*this, replica};
    return calling_python([&] {
      const nb::object result = nb::handle(fn.get())(replica);
      if (result.is_none()) return placeholder(context.device());
      returned[static_cast<std::size_t>(context.replica_id())] = 1;
      return read(ValueLike{result}, context.device(), Access::kRead, "what a replica returned");
    });
  }
};

void check_all_returned(const Run& run) {
  for (std::size_t replica = 0; replica < run.returned.size(); ++replica) {
    if (run.returned[replica] != 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "MirroredStrategy.run: replica " + std::to_string(replica) +
                    " returned nothing, others a value; expected the same of all replicas");
  }
}

nb::object all_reduce(const Replica& self, ReduceOp op, nb::handle value, Options options) {
  ReplicaContext& context = self.checked();
  const bool is_list = nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value);
  const auto item = [&](nb::handle one) {
    return read(ValueLike{one}, context.device(), Access::kRead, "all_reduce");
  };
  std::vector<Value> values;
  if (is_list) {
    for (const nb::handle one : nb::borrow<nb::iterable>(value)) values.push_back(item(one));
  } else {
    values.push_back(item(value));
  }
  const std::vector<Value> results = without_gil(
      [&] { return context.all_reduce(op, std::span<const Value>(values), or_default(options)); });
  return is_list ? nb::cast(results) : nb::cast(results.front());
}

// What a merge function returned: nothing, one value or several.
std::vector<PerReplica> read_merged(nb::handle result, bool& is_list) {
  is_list = nb::isinstance<nb::list>(result) || nb::isinstance<nb::tuple>(result);
  if (result.is_none()) return {};
  if (is_list) return read(PerReplicasLike{result}, Access::kRead, "what merge_call's fn returned");
  return {read(PerReplicaLike{result}, Access::kRead, "what merge_call's fn returned")};
}

// Only replica 0's function is called; all replicas hear from it what kind of result there is.
nb::object merge_call(const Replica& self, MergeFnLike fn, nb::handle args) {
  ReplicaContext& context = self.checked();
  std::vector<Value> values;
  for (const nb::handle one : nb::borrow<nb::iterable>(args))
    values.push_back(read(ValueLike{one}, context.device(), Access::kRead, "merge_call"));
  const auto function = kept(fn.object);
  bool is_list = false;
  const auto merge = [&](MirroredStrategy& strategy, std::span<const PerReplica> merged) {
    const CallbackTurn turn;
    return calling_python([&] {
      nb::list arguments;
      arguments.append(nb::find(strategy));
      for (const PerReplica& one : merged) arguments.append(nb::cast(one));
      const nb::object result = nb::handle(function.get())(*arguments);
      return read_merged(result, is_list);
    });
  };
  const std::vector<Value> results =
      without_gil([&] { return context.merge_call(merge, std::span<const Value>(values)); });
  if (results.empty()) return nb::none();
  return results.size() > 1 || is_list ? nb::cast(results) : nb::cast(results.front());
}

}  // namespace

std::optional<PerReplica> run_replicas(MirroredStrategy& strategy, ReplicaFnLike fn) {
  Run run{kept(fn.object), {}, std::vector<char>(static_cast<std::size_t>(strategy.num_replicas()))};
  auto results = [&] {
    const nb::gil_scoped_release unlocked;
    const InterruptCheck check([&] { run.interrupt.check_signals_for_all(); });
    return strategy.run([&](ReplicaContext& context) {
      const InterruptCheck replica_check([&] { run.interrupt.check_flag(); });
      return run.call(context);
    });
  }();
  if (std::ranges::find(run.returned, 1) == run.returned.end()) return {};
  check_all_returned(run);
  return results;
}

void bind_replicas(nb::module_& module) {
  nb::class_<Replica>(module, "ReplicaContext", R"(One replica of a MirroredStrategy.run.

all_reduce and merge_call are made by all replicas together, in the same order.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> ids = strategy.run(lambda replica: np.array([replica.replica_id, replica.num_replicas]))
>>> [value.numpy().tolist() for value in ids]
[[0, 2], [1, 2]]
)")
      .def_prop_ro("replica_id", [](const Replica& self) { return self.checked().replica_id(); })
      .def_prop_ro("num_replicas", [](const Replica& self) { return self.checked().num_replicas(); })
      .def_prop_ro("device", [](const Replica& self) { return self.checked().device(); })
      .def_prop_ro(
          "strategy", [](const Replica& self) { return nb::find(self.checked().strategy()); },
          nb::sig("def strategy(self) -> MirroredStrategy"))
      .def("all_reduce", &all_reduce, nb::arg("op"), nb::arg("value"), nb::arg("options").none() = nb::none(),
           nb::sig("def all_reduce(self, op: ReduceOp, value: onesum.typing.ArrayLike, "
                   "options: CommunicationOptions | None = None) -> Tensor"),
           R"(The sum or mean over all replicas, the same on each: of a value, or of a list in one batch.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> def step(replica):
...     total, mean = replica.all_reduce(onesum.ReduceOp.SUM, [np.ones(2), np.arange(2)])
...     return total
>>> strategy.run(step).tensor(0).numpy()
array([2., 2.])
)")
      // The same function: what it returns depends on what it is given.
      .def("all_reduce", &all_reduce, nb::arg("op"), nb::arg("value"), nb::arg("options").none() = nb::none(),
           nb::sig("def all_reduce(self, op: ReduceOp, value: IndexedSlices, "
                   "options: CommunicationOptions | None = None) -> IndexedSlices"))
      .def("all_reduce", &all_reduce, nb::arg("op"), nb::arg("value"), nb::arg("options").none() = nb::none(),
           nb::sig(
               "def all_reduce(self, op: ReduceOp, value: collections.abc.Sequence[onesum.typing.ValueLike], "
               "options: CommunicationOptions | None = None) -> list[Tensor | IndexedSlices]"))
      .def("merge_call", &merge_call, nb::arg("fn"), nb::arg("args") = nb::tuple(),
           nb::sig("def merge_call(self, fn: onesum.typing.MergeFn, "
                   "args: collections.abc.Sequence[onesum.typing.ValueLike] = ()) -> typing.Any"),
           R"(Calls replica 0's fn(strategy, *args) once, in cross-replica context, while all replicas wait.

Each argument is a PerReplica then. Of each value that fn returns the replica gets the component on its device,
or the only one there is.

>>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
>>> def merge(strategy, value):
...     return strategy.extended.reduce_to(onesum.ReduceOp.SUM, value, value)
>>> strategy.run(lambda replica: replica.merge_call(merge, (np.ones(2),))).tensor(1).numpy()
array([2., 2.])
)");
}

}  // namespace onesum::python
