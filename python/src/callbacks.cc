#include "callbacks.h"

#include <vector>

#include <nanobind/stl/vector.h>

#include <onesum/error.h>
#include <onesum/strategy.h>

#include "owners.h"
#include "python_error.h"
#include "read.h"
#include "works.h"

namespace onesum::python {
namespace {

AccumulationFn caller_of(std::shared_ptr<Function> function) {
  if (!function) return {};
  return [function = std::move(function)](std::span<const Tensor> components) {
    const CallbackTurn turn;
    const std::shared_ptr<PyObject> object = function->object;
    if (!object)
      throw Error(ErrorCode::kAborted, "accumulation_fn was let go of with the object it belonged to");
    return calling_python([&] {
      const nb::object arguments = nb::cast(std::vector<Tensor>(components.begin(), components.end()));
      const nb::object sum = nb::handle(object.get())(arguments);
      return read(ArrayLike{sum}, components.front().device(), Access::kRead,
                  "what accumulation_fn returned");
    });
  };
}

int traverse_one_device(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& function = nb::inst_ptr<OneDevice>(self)->accumulation_fn();
  if (function) Py_VISIT(function->object.get());
  return 0;
}

int clear_one_device(PyObject* self) noexcept {
  const auto& function = nb::inst_ptr<OneDevice>(self)->accumulation_fn();
  // A call that is under way may want it; the collector comes again.
  if (function && !are_works_under_way()) function->object.reset();
  return 0;
}

int traverse_strategy(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  // Objects that Python made are kept by the strategy; its own are not.
  const nb::object ops = nb::find(nb::inst_ptr<MirroredStrategy>(self)->cross_device_ops());
  if (ops.is_valid() && nb::inst_state(ops).second) Py_VISIT(ops.ptr());
  return 0;
}

}  // namespace

PyType_Slot one_device_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_one_device)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_one_device)},
    {0, nullptr},
};

PyType_Slot strategy_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_strategy)},
    {0, nullptr},
};

std::shared_ptr<Function> read(AccumulationLike given) {
  if (given.object.is_none()) return nullptr;
  if (PyCallable_Check(given.object.ptr()) == 0) throw nb::type_error("accumulation_fn: cannot be called");
  return std::make_shared<Function>(Function{kept(given.object)});
}

OneDevice::OneDevice(const std::optional<std::string>& reduce_to_device,
                     std::shared_ptr<Function> accumulation_fn, const std::optional<Cluster>& cluster)
    : ReductionToOneDevice(reduce_to_device, caller_of(accumulation_fn), cluster),
      accumulation_fn_(std::move(accumulation_fn)) {}

}  // namespace onesum::python
