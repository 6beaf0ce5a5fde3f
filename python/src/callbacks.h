// Functions of the user's that the library calls, on any thread.
//
// A function usually refers to what surrounds it, and so to the object that it was given to: a circle through
// C++ that Python's garbage collector cannot see by itself. The object's type shows it the function, and lets
// go of it.
#pragma once

#include <memory>

#include <onesum/cross_device_ops.h>

#include "arguments.h"

namespace onesum::python {

// A function that is called with the GIL, until it is let go of.
struct Function {
  std::shared_ptr<PyObject> object;
};

// None is null.
std::shared_ptr<Function> read(AccumulationLike given);

class OneDevice : public ReductionToOneDevice {
 public:
  OneDevice(const std::optional<std::string>& reduce_to_device, std::shared_ptr<Function> accumulation_fn,
            const std::optional<Cluster>& cluster);
  const std::shared_ptr<Function>& accumulation_fn() const { return accumulation_fn_; }

 private:
  std::shared_ptr<Function> accumulation_fn_;
};

// What the types add to Python's own slots.
extern PyType_Slot one_device_slots[];
extern PyType_Slot strategy_slots[];

}  // namespace onesum::python
