// onesum.torch._torch: what python/onesum/torch needs of C++.
#include <chrono>
#include <string>
#include <vector>

#include <torch/python.h>

#include "backend.h"

namespace onesum::bridge {
namespace {

c10::intrusive_ptr<c10d::Backend> make_backend(int rank, int size, const std::vector<int>& ranks,
                                               const std::string& name, double timeout_seconds) {
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000));
  try {
    return c10::make_intrusive<OnesumBackend>(Membership{rank, size, ranks, name, timeout});
  } catch (const Error& error) {
    throw c10::DistBackendError(c10::SourceLocation{__func__, __FILE__, __LINE__}, error.what());
  }
}

// At the end of the process. Works that end run hooks and callbacks of Python, which must be there still.
void leave_for_good() {
  leave();
  WorkQueue::drain_all(std::chrono::seconds(10));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  namespace py = pybind11;
  module.def("make_backend", &make_backend, py::call_guard<py::gil_scoped_release>());
  module.def("has_joined", &has_joined);
  module.def("leave", &leave_for_good, py::call_guard<py::gil_scoped_release>());
}

}  // namespace onesum::bridge
