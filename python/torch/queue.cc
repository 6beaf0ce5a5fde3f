#include "queue.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace onesum::bridge {

// Outlives the queue for as long as its thread runs.
struct WorkQueue::Core {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<c10::intrusive_ptr<CallWork>> works;  // that wait
  bool is_busy = false;                            // one runs
  bool is_over = false;
  std::thread thread;

  void await_idleness(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [this] { return !is_busy && works.empty(); });
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !is_busy && (is_over || !works.empty()); });
      if (works.empty()) return;
      c10::intrusive_ptr<CallWork> work = std::move(works.front());
      works.pop_front();
      is_busy = true;
      lock.unlock();
      work->run();
      work.reset();
      lock.lock();
      is_busy = false;
      changed.notify_all();
    }
  }
};

// The queues that have a thread.
struct WorkQueue::All {
  std::mutex mutex;
  std::vector<std::weak_ptr<Core>> cores;

  // Never destroyed: threads may outlive static objects.
  static All& of_process() {
    static auto* const all = new All;
    return *all;
  }

  void add(const std::shared_ptr<Core>& core) {
    const std::lock_guard lock(mutex);
    std::erase_if(cores, [](const std::weak_ptr<Core>& other) { return other.expired(); });
    cores.push_back(core);
  }
};

WorkQueue::WorkQueue() : core_(std::make_shared<Core>()) {}

WorkQueue::~WorkQueue() {
  std::unique_lock lock(core_->mutex);
  core_->is_over = true;
  core_->changed.notify_all();
  std::thread thread = std::move(core_->thread);
  lock.unlock();
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

void WorkQueue::run_now(CallWork& work) {
  std::unique_lock lock(core_->mutex);
  core_->await_idleness(lock);
  core_->is_busy = true;
  lock.unlock();
  work.run();
  lock.lock();
  core_->is_busy = false;
  core_->changed.notify_all();
}

void WorkQueue::post(c10::intrusive_ptr<CallWork> work) {
  const std::lock_guard lock(core_->mutex);
  core_->works.push_back(std::move(work));
  if (!core_->thread.joinable()) {
    core_->thread = std::thread([core = core_] { core->serve(); });
    All::of_process().add(core_);
    pthread_setname_np(core_->thread.native_handle(), "onesum-torch");
  }
  core_->changed.notify_all();
}

void WorkQueue::drain() {
  std::unique_lock lock(core_->mutex);
  core_->await_idleness(lock);
}

void WorkQueue::drain_all(std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  All& all = All::of_process();
  const std::lock_guard lock_of_all(all.mutex);
  for (const std::weak_ptr<Core>& weak : all.cores) {
    const std::shared_ptr<Core> core = weak.lock();
    if (!core) continue;
    std::unique_lock lock(core->mutex);
    core->changed.wait_until(lock, deadline, [&] { return !core->is_busy && core->works.empty(); });
  }
}

}  // namespace onesum::bridge
