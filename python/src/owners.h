// Python objects that C++ keeps, and what happens to them when the interpreter ends.
//
// The library lets go of memory on whatever thread is last. A thread without the GIL does not wait for it: it
// hands the object to the next one that has it.
#pragma once

#include <memory>
#include <optional>
#include <shared_mutex>

#include <nanobind/nanobind.h>

namespace onesum::python {

namespace nb = nanobind;

// Called once by the module. At the interpreter's end, functions registered with atexit after it have run
// already. Works under way have some seconds to end then; after that their clusters are closed. Later the
// library calls no Python code any more.
void prepare_for_exit(nb::module_& module);

// Keeps a Python object; with the GIL.
std::shared_ptr<PyObject> kept(nb::handle object);

// A buffer that is released once, with the GIL, whoever lets go of it.
std::shared_ptr<const void> kept(const Py_buffer& buffer);  // takes over its contents

// Lets go of what other threads have handed over; with the GIL.
void release_handed_over() noexcept;

// The GIL for a function of the user's on a thread of the library's. Throws aborted when the interpreter
// ends.
class CallbackTurn {
 public:
  CallbackTurn();

 private:
  std::shared_lock<std::shared_mutex> gate_;
  std::optional<nb::gil_scoped_acquire> gil_;
};

}  // namespace onesum::python
