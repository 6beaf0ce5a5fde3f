#include "cluster/sequence.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <onesum/error.h>

namespace onesum::cluster {
namespace {

// A call that waits for its turn, in call order. With a job it is the sequence's thread that runs it.
struct Waiter {
  Waiter* next = nullptr;
  bool granted = false;
  std::condition_variable turn_came;
  std::function<void()> job;
};

// The sequence whose call this thread is inside of.
constinit thread_local const void* inside = nullptr;

}  // namespace

// Shared with the thread, which may be the last to leave.
struct Sequence::Core {
  std::mutex mutex;
  bool busy = false;
  Waiter* head = nullptr;
  Waiter* tail = nullptr;
  Waiter* granted_job = nullptr;
  bool stopping = false;
  std::condition_variable thread_wakes;
  std::thread thread;

  void append(Waiter& waiter) {
    (head == nullptr ? head : tail->next) = &waiter;
    tail = &waiter;
  }

  void remove(Waiter& waiter) {
    Waiter* previous = nullptr;
    for (Waiter* w = head; w != &waiter; w = w->next) previous = w;
    (previous == nullptr ? head : previous->next) = waiter.next;
    if (tail == &waiter) tail = previous;
  }

  // With the mutex held: whoever is first in line, if anyone, is next.
  void pass_on() {
    Waiter* next = head;
    busy = next != nullptr;
    if (next == nullptr) return;
    remove(*next);
    if (next->job) {
      granted_job = next;
      thread_wakes.notify_one();
    } else {
      next->granted = true;
      next->turn_came.notify_one();
    }
  }

  void run_jobs() {
    std::unique_lock lock(mutex);
    inside = this;
    for (;;) {
      thread_wakes.wait(lock, [&] { return granted_job != nullptr || stopping; });
      if (granted_job == nullptr) return;
      const std::unique_ptr<Waiter> waiter(std::exchange(granted_job, nullptr));
      lock.unlock();
      waiter->job();
      waiter->job = nullptr;  // what it holds goes before the turn does
      lock.lock();
      pass_on();
    }
  }
};

Sequence::Sequence() : core_(std::make_shared<Core>()) {}

Sequence::~Sequence() {
  std::thread thread;
  {
    const std::lock_guard lock(core_->mutex);
    core_->stopping = true;
    core_->thread_wakes.notify_one();
    thread = std::move(core_->thread);
  }
  if (!thread.joinable()) return;
  // The last handle of a cluster may be held by a job that has just run: then this is the sequence's own thread.
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

Sequence::Turn::Turn(Sequence& sequence, Clock::time_point deadline) : sequence_(sequence), outer_(inside) {
  Core& core = *sequence_.core_;
  if (inside == &core) {
    throw Error(ErrorCode::kInvalidArgument,
                "a call was made from inside a call on the same cluster (from an accumulation_fn); use another "
                "cluster there");
  }
  std::unique_lock lock(core.mutex);
  if (!core.busy) {
    core.busy = true;
  } else {
    Waiter waiter;
    core.append(waiter);
    if (!waiter.turn_came.wait_until(lock, deadline, [&] { return waiter.granted; })) {
      core.remove(waiter);
      throw Error(ErrorCode::kDeadlineExceeded,
                  "the call's timeout passed while it waited for earlier calls on the same cluster to finish");
    }
  }
  inside = &core;
}

Sequence::Turn::~Turn() {
  inside = outer_;
  const std::lock_guard lock(sequence_.core_->mutex);
  sequence_.core_->pass_on();
}

void Sequence::post(std::function<void()> job) {
  auto waiter = std::make_unique<Waiter>();
  waiter->job = std::move(job);
  const std::lock_guard lock(core_->mutex);
  if (!core_->thread.joinable()) {
    core_->thread = std::thread([core = core_] { core->run_jobs(); });
  }
  core_->append(*waiter.release());
  if (!core_->busy) core_->pass_on();
}

bool Sequence::is_inside() const noexcept { return inside == core_.get(); }

}  // namespace onesum::cluster
