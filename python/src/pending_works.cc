// The life of Works in Python: the part of works.h without names in Python.
#include <algorithm>
#include <utility>
#include <vector>

#include <onesum/error.h>

#include "waiting.h"
#include "works.h"

namespace onesum::python {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceAtExit{5};
constexpr std::chrono::milliseconds kSlice{100};  // between two looks for signals

// One that nobody in Python holds any more.
struct LeftWork {
  Work work;
  Cluster cluster;
};

// All that may be under way; with the GIL. Never destroyed.
struct Works {
  std::vector<std::weak_ptr<PendingWork>> held;
  std::vector<std::unique_ptr<LeftWork>> left;
};

Works& all_works() {
  static auto* const all = new Works;
  return *all;
}

bool wait(Work& work, std::optional<PendingWork::Deadline> deadline) {
  const nb::gil_scoped_release unlocked;
  for (;;) {
    std::chrono::nanoseconds longest = kSlice;
    if (deadline) longest = std::min(longest, std::chrono::nanoseconds(*deadline - steady_clock::now()));
    if (work.wait_for(std::max(longest, std::chrono::nanoseconds(0)))) return true;
    check_signals();
    if (deadline && steady_clock::now() >= *deadline) return false;
  }
}

// Whether it is done by then. Whoever interrupts the end of the interpreter wants no more patience.
bool is_done_at_exit(Work& work, PendingWork::Deadline deadline) {
  try {
    return wait(work, deadline);
  } catch (const PythonError&) {
    return false;
  }
}

void finish(Work& work, const Cluster& cluster, PendingWork::Deadline deadline) {
  if (is_done_at_exit(work, deadline)) return;
  const nb::gil_scoped_release unlocked;
  Cluster(cluster).close();
}

}  // namespace

PendingWork::PendingWork(Work work, Cluster cluster) : work_(std::move(work)), cluster_(std::move(cluster)) {}

PendingWork::~PendingWork() {
  if (!is_done_before_going())
    all_works().left.push_back(std::make_unique<LeftWork>(std::move(*work_), *cluster_));
  const nb::gil_scoped_release unlocked;
  work_.reset();
  cluster_.reset();
}

// Nothing can be raised here: what a signal's handler raises comes again where Python runs on.
bool PendingWork::is_done_before_going() noexcept {
  if (is_left_ || work_->is_done()) return work_->is_done();
  const nb::error_scope raised_before;
  try {
    return wait(*work_, {});
  } catch (const PythonError& error) {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(error.value()));
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
    return false;
  } catch (const Error&) {
    return true;  // inside a call on the same cluster, which the work itself says in the log
  }
}

bool PendingWork::wait_until(std::optional<Deadline> deadline) {
  try {
    return wait(*work_, deadline);
  } catch (const PythonError&) {
    is_left_ = true;
    throw;
  }
}

void PendingWork::check() {
  try {
    work_->wait();
  } catch (const PythonError& error) {
    error_ = error;
    throw;
  }
}

std::shared_ptr<PendingWork> pending(Work work, const Cluster& cluster) {
  auto held = std::make_shared<PendingWork>(std::move(work), cluster);
  Works& all = all_works();
  std::erase_if(all.held, [](const std::weak_ptr<PendingWork>& other) { return other.expired(); });
  std::erase_if(all.left, [](const std::unique_ptr<LeftWork>& other) { return other->work.is_done(); });
  all.held.push_back(held);
  return held;
}

bool are_works_under_way() noexcept {
  const Works& all = all_works();
  const auto is_under_way = [](const std::weak_ptr<PendingWork>& other) {
    const std::shared_ptr<PendingWork> held = other.lock();
    return held && !held->work().is_done();
  };
  return std::ranges::any_of(all.held, is_under_way) ||
         std::ranges::any_of(all.left, [](const auto& other) { return !other->work.is_done(); });
}

void finish_works() {
  const auto deadline = steady_clock::now() + kPatienceAtExit;
  for (const std::weak_ptr<PendingWork>& other : std::vector(all_works().held)) {
    const std::shared_ptr<PendingWork> held = other.lock();
    if (held) finish(held->work(), held->cluster(), deadline);
  }
  for (const std::unique_ptr<LeftWork>& other : all_works().left)
    finish(other->work, other->cluster, deadline);
}

}  // namespace onesum::python
