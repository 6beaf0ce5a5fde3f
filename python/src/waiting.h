// Calls that may wait: without the GIL, and until Ctrl-C.
#pragma once

#include <utility>

#include <nanobind/nanobind.h>

#include <onesum/interrupt.h>

namespace onesum::python {

namespace nb = nanobind;

// Throws what a signal's handler raised (KeyboardInterrupt), as PythonError. Takes the GIL.
void check_signals();

// Calls `fn` without the GIL; signals that come while it waits end it.
template <class Fn>
auto waiting(Fn&& fn) {
  const nb::gil_scoped_release unlocked;
  const InterruptCheck check(check_signals);
  return std::forward<Fn>(fn)();
}

}  // namespace onesum::python
