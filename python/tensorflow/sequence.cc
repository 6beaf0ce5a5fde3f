#include "sequence.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace onesum::tf_bridge {

// Outlives the sequence for as long as a call runs.
struct Sequence::Core {
  explicit Core(Cluster its) : cluster(std::move(its)) {}

  Cluster cluster;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> calls;  // that wait
  bool is_busy = false;                     // one runs
  bool is_over = false;
  std::thread thread;

  bool is_idle() const { return !is_busy && calls.empty(); }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !is_busy && (is_over || !calls.empty()); });
      if (calls.empty()) return;
      std::function<void()> call = std::move(calls.front());
      calls.pop_front();
      is_busy = true;
      lock.unlock();
      call();
      call = nullptr;
      lock.lock();
      is_busy = false;
      changed.notify_all();
    }
  }
};

// Those that there are.
struct Sequence::All {
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

  std::vector<std::shared_ptr<Core>> alive() {
    const std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Core>> found;
    for (const std::weak_ptr<Core>& weak : cores) {
      if (std::shared_ptr<Core> core = weak.lock()) found.push_back(std::move(core));
    }
    return found;
  }
};

Sequence::Sequence(Cluster cluster) : core_(std::make_shared<Core>(std::move(cluster))) {
  All::of_process().add(core_);
}

Sequence::~Sequence() {
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

std::string Sequence::DebugString() const {
  const Cluster& its = core_->cluster;
  return "onesum cluster, rank " + std::to_string(its.rank()) + " of " + std::to_string(its.size());
}

const Cluster& Sequence::cluster() const noexcept { return core_->cluster; }

void Sequence::run_now(const std::function<void()>& call) {
  const std::shared_ptr<Core> core = core_;
  std::unique_lock lock(core->mutex);
  core->changed.wait(lock, [&] { return core->is_idle(); });
  core->is_busy = true;
  lock.unlock();
  call();
  lock.lock();
  core->is_busy = false;
  core->changed.notify_all();
}

void Sequence::post(std::function<void()> call) {
  const std::lock_guard lock(core_->mutex);
  core_->calls.push_back(std::move(call));
  if (!core_->thread.joinable()) {
    core_->thread = std::thread([core = core_] { core->serve(); });
    pthread_setname_np(core_->thread.native_handle(), "onesum-tf");
  }
  core_->changed.notify_all();
}

void Sequence::leave_all(std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  const std::vector<std::shared_ptr<Core>> cores = All::of_process().alive();
  for (const std::shared_ptr<Core>& core : cores) core->cluster.close();
  for (const std::shared_ptr<Core>& core : cores) {
    std::unique_lock lock(core->mutex);
    core->changed.wait_until(lock, deadline, [&] { return core->is_idle(); });
  }
}

}  // namespace onesum::tf_bridge
