#include "owners.h"

#include <mutex>
#include <vector>

#include <onesum/error.h>

#include "read_only.h"
#include "works.h"

namespace onesum::python {
namespace {

// What threads without the GIL have let go of.
struct HandedOver {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  std::vector<Py_buffer> buffers;
};

HandedOver& handed_over() {
  static auto* const all = new HandedOver;  // never destroyed: threads of the library may outlive statics
  return *all;
}

struct Exit {
  std::shared_mutex gate;  // shared by functions of the user's that run
  bool has_come = false;
};

Exit& end_of_interpreter() {
  static auto* const end = new Exit;
  return *end;
}

void release(Py_buffer& buffer) noexcept {
  if (buffer.readonly != 0) forget_read_only(buffer.buf);
  PyBuffer_Release(&buffer);
}

int release_when_called(void*) noexcept {
  release_handed_over();
  return 0;
}

// If the interpreter has too much to do to be asked, the next call of the extension does it.
void ask_to_release() noexcept {
  if (Py_IsInitialized() != 0) Py_AddPendingCall(release_when_called, nullptr);
}

bool has_gil() noexcept { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

void let_go(PyObject* object) {
  if (has_gil()) return Py_DECREF(object);
  {
    const std::lock_guard lock(handed_over().mutex);
    handed_over().objects.push_back(object);
  }
  ask_to_release();
}

void let_go(Py_buffer& buffer) {
  if (has_gil()) return release(buffer);
  {
    const std::lock_guard lock(handed_over().mutex);
    handed_over().buffers.push_back(buffer);
  }
  ask_to_release();
}

// One allocation for the buffer and those who count on it.
struct KeptBuffer {
  explicit KeptBuffer(const Py_buffer& taken) : buffer(taken) {}
  ~KeptBuffer() { let_go(buffer); }
  KeptBuffer(const KeptBuffer&) = delete;
  KeptBuffer& operator=(const KeptBuffer&) = delete;
  Py_buffer buffer;
};

void at_exit() {
  finish_works();
  {
    const nb::gil_scoped_release unlocked;
    const std::lock_guard closed(end_of_interpreter().gate);
    end_of_interpreter().has_come = true;
  }
  release_handed_over();
}

}  // namespace

void prepare_for_exit(nb::module_& module) {
  module.def("_at_exit", &at_exit);
  nb::module_::import_("atexit").attr("register")(module.attr("_at_exit"));
}

std::shared_ptr<PyObject> kept(nb::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* gone) { let_go(gone); }};
}

std::shared_ptr<const void> kept(const Py_buffer& buffer) { return std::make_shared<KeptBuffer>(buffer); }

void release_handed_over() noexcept {
  std::vector<PyObject*> objects;
  std::vector<Py_buffer> buffers;
  {
    const std::lock_guard lock(handed_over().mutex);
    objects.swap(handed_over().objects);
    buffers.swap(handed_over().buffers);
  }
  for (PyObject* const object : objects) Py_DECREF(object);
  for (Py_buffer& buffer : buffers) release(buffer);
}

CallbackTurn::CallbackTurn() : gate_(end_of_interpreter().gate) {
  if (end_of_interpreter().has_come || Py_IsInitialized() == 0) {
    throw Error(ErrorCode::kAborted,
                "the Python interpreter has ended; its functions can no longer be called");
  }
  gil_.emplace();
}

}  // namespace onesum::python
