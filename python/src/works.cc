// Work and PreparedReduce.
#include "works.h"

#include <chrono>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <onesum/error.h>

#include "bindings.h"
#include "owners.h"
#include "prepared.h"
#include "read.h"
#include "waiting.h"

namespace onesum::python {
namespace {

using std::chrono::steady_clock;

void wait(PendingWork& self, TimeoutLike timeout) {
  std::optional<steady_clock::time_point> deadline;
  if (!timeout.object.is_none()) deadline = steady_clock::now() + read(timeout);
  if (!self.wait_until(deadline))
    throw Error(ErrorCode::kDeadlineExceeded, "Work.wait: it is not done within the timeout, and goes on");
  self.check();
}

// What the function raises has nobody to go to but sys.unraisablehook.
void when_done(PendingWork& self, CallbackLike fn) {
  if (PyCallable_Check(fn.object.ptr()) == 0) throw nb::type_error("when_done: fn cannot be called");
  self.work().when_done([function = kept(fn.object)] {
    try {
      const CallbackTurn turn;
      try {
        nb::handle(function.get())();
      } catch (nb::python_error& error) {
        error.discard_as_unraisable(function.get());
      }
    } catch (const Error&) {
      return;  // the interpreter has ended
    }
  });
}

// Writes to an eventfd when it is done: who waits for it needs no thread and no GIL.
void notify(PendingWork& self, int event_fd) {
  const int own = ::dup(event_fd);
  if (own < 0) throw nb::value_error("no such descriptor");
  self.work().when_done([own] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(own, &one, sizeof(one));
    ::close(own);
  });
}

int traverse_work(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& error = nb::inst_ptr<PendingWork>(self)->error();
  if (error) Py_VISIT(error->value());
  return 0;
}

PyType_Slot work_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_work)},
    {0, nullptr},
};

void bind_prepared(nb::module_& module) {
  nb::class_<Prepared>(module, "PreparedReduce",
                       R"(A reduction, or another Collective, that runs again and again on the same arrays.

>>> ops = onesum.ReductionToOneDevice()
>>> a, b = np.ones(2), np.ones(2)
>>> value = onesum.PerReplica([a, b])
>>> prepared = ops.prepare(onesum.ReduceOp.SUM, [value], [value])
>>> prepared.run(); prepared.run()
>>> a
array([4., 4.])
)")
      .def(
          "run", [](Prepared& self) { waiting([&] { self.reduce.run(); }); }, R"(Runs it.

>>> a, b = np.ones(2), np.ones(2)
>>> onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).run()
)")
      .def(
          "start", [](Prepared& self) { return pending(self.reduce.start(), self.cluster); },
          R"(Runs it without waiting.

>>> a, b = np.ones(2), np.ones(2)
>>> work = onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).start()
>>> work.wait()
)");
}

}  // namespace

void bind_work(nb::module_& module) {
  nb::class_<PendingWork>(module, "Work", nb::type_slots(work_slots),
                          R"(A call under way. Dropping it waits for it, until Ctrl-C.

Where the interpreter ends first, it has five seconds; then its cluster is closed.

>>> ops = onesum.ReductionToOneDevice()
>>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> work.results()[0].numpy()
array([2., 2.])

In asyncio it is awaited:

>>> import asyncio
>>> async def main():
...     return await ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> asyncio.run(main())[0].numpy()
array([2., 2.])
)")
      .def(
          "wait", &wait, nb::arg("timeout").none() = nb::none(),
          nb::sig("def wait(self, timeout: float | datetime.timedelta | None = None) -> None"),
          R"(Until done; raises what the call raised. After the timeout: DeadlineExceededError; the call goes on.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).wait(timeout=10)
)")
      .def(
          "wait_for",
          [](PendingWork& self, TimeoutLike longest) {
            return self.wait_until(steady_clock::now() + read(longest));
          },
          nb::arg("longest"),
          R"(Whether it is done by then, in seconds or as a timedelta. Raises nothing of the call's.

>>> ops = onesum.ReductionToOneDevice()
>>> ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).wait_for(10)
True
)")
      .def("when_done", &when_done, nb::arg("fn"),
           R"(Calls fn() once it is done: at once if it is, else on the thread that has done it.

It must not wait for other Works. What it raises goes to sys.unraisablehook.

>>> ops = onesum.ReductionToOneDevice()
>>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> work.wait(); work.when_done(lambda: print("done"))
done
)")
      .def(
          "is_done", [](PendingWork& self) { return self.work().is_done(); },
          R"(Whether it is done.

>>> ops = onesum.ReductionToOneDevice()
>>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> work.wait(); work.is_done()
True
)")
      .def(
          "results",
          [](PendingWork& self) {
            self.wait_until({});
            self.check();
            return self.work().results();
          },
          R"(Waits; empty for calls into the caller's memory.

>>> ops = onesum.ReductionToOneDevice()
>>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
>>> len(work.results())
1
)")
      .def("_notify", &notify, nb::arg("event_fd"))
      .def(
          "__await__",
          [](nb::handle self) {
            return nb::module_::import_("onesum._await").attr("results")(self).attr("__await__")();
          },
          nb::sig("def __await__(self) -> collections.abc.Generator[typing.Any, None, list[Mirrored]]"));
  bind_prepared(module);
}

}  // namespace onesum::python
