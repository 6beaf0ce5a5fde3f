#include "cluster/sequence.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <onesum/error.h>

#include "base/interrupt.h"

namespace onesum::cluster {
namespace {

// A call that waits for its turn, in call order. With a job it is the sequence's thread that runs it.
struct Waiter {
  Waiter* next = nullptr;
  bool granted = false;
  std::condition_variable turn_came;
  std::function<void()> job;
};

// The innermost call that this thread is inside of.
[[gnu::tls_model("initial-exec")]] constinit thread_local const Sequence::Inside* innermost = nullptr;

bool is_inside(const void* sequence) noexcept {
  for (const Sequence::Inside* call = innermost; call != nullptr; call = call->outer) {
    if (call->sequence == sequence) return true;
  }
  return false;
}

}  // namespace

// Shared with the thread, which may be the last to leave.
struct Sequence::Core {
  // Whose turn it is. Between kFree and kTaken it changes without the mutex, so that a call that meets no
  // other costs two exchanges: taking acquires what the call before released. kQueued is set under the mutex
  // and tells whoever has the turn to look at the queue when leaving. The queue is empty whenever the turn is
  // free.
  static constexpr unsigned kFree = 0;
  static constexpr unsigned kTaken = 1;
  static constexpr unsigned kQueued = 2;
  std::atomic<unsigned> turn{kFree};

  std::mutex mutex;  // of all that follows
  Waiter* head = nullptr;
  Waiter* tail = nullptr;
  Waiter* granted_job = nullptr;
  bool stopping = false;
  std::condition_variable thread_wakes;
  std::thread thread;

  bool try_take() noexcept {
    unsigned expected = kFree;
    return turn.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                        std::memory_order_relaxed);
  }

  bool try_leave() noexcept {
    unsigned expected = kTaken;
    return turn.compare_exchange_strong(expected, kFree, std::memory_order_release,
                                        std::memory_order_relaxed);
  }

  // With the mutex held: takes the turn if it is free; else whoever has it will come by.
  bool take_or_queue() noexcept {
    unsigned seen = turn.load(std::memory_order_relaxed);
    for (;;) {
      const unsigned wanted = seen == kFree ? kTaken : kTaken | kQueued;
      if (turn.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) {
        return wanted == kTaken;
      }
    }
  }

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

  // Waits (locked) for the turn of one in line; says whether it came before the deadline. Where the caller
  // wants to wait no longer, throws what says so, and the line is without the waiter.
  bool await(Waiter& waiter, std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
    const auto has_come = [&] { return waiter.granted; };
    while (is_interruptible() && now() + kInterruptInterval < deadline) {
      if (waiter.turn_came.wait_until(lock, now() + kInterruptInterval, has_come)) return true;
      lock.unlock();
      try {
        check_interrupt();
      } catch (...) {
        lock.lock();
        waiter.granted ? pass_on() : remove(waiter);
        throw;
      }
      lock.lock();
    }
    return waiter.turn_came.wait_until(lock, deadline, has_come);
  }

  // With the mutex held, by whoever has the turn: the first in line, if anyone, has it next.
  void pass_on() {
    Waiter* next = head;
    if (next == nullptr) {
      turn.store(kFree, std::memory_order_release);
      return;
    }
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
    const Inside always{this, nullptr};
    innermost = &always;
    for (;;) {
      thread_wakes.wait(lock, [&] { return granted_job != nullptr || stopping; });
      if (granted_job == nullptr) break;
      const std::unique_ptr<Waiter> waiter(std::exchange(granted_job, nullptr));
      lock.unlock();
      waiter->job();
      waiter->job = nullptr;  // what it holds goes before the turn does
      lock.lock();
      pass_on();
    }
    innermost = nullptr;
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
  // The last handle of a cluster may be held by a job that has just run: then this is the sequence's own
  // thread.
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

Sequence::Turn::Turn(Sequence& sequence, Clock::time_point deadline)
    : sequence_(sequence), inside_{sequence.core_.get(), innermost} {
  Core& core = *sequence_.core_;
  if (sequence_.is_inside()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "a call was made from inside a call on the same cluster (from an accumulation_fn); use another "
        "cluster there");
  }
  if (!core.try_take()) wait_for_turn(core, deadline);
  innermost = &inside_;
}

void Sequence::Turn::wait_for_turn(Core& core, Clock::time_point deadline) {
  std::unique_lock lock(core.mutex);
  if (core.take_or_queue()) return;
  Waiter waiter;
  core.append(waiter);
  if (!core.await(waiter, lock, deadline)) {
    core.remove(waiter);
    throw Error(ErrorCode::kDeadlineExceeded,
                "the call's timeout passed while it waited for earlier calls on the same cluster to finish");
  }
}

Sequence::Turn::~Turn() {
  innermost = inside_.outer;
  Core& core = *sequence_.core_;
  if (core.try_leave()) return;
  const std::lock_guard lock(core.mutex);
  core.pass_on();
}

void Sequence::post(std::function<void()> job) {
  auto waiter = std::make_unique<Waiter>();
  waiter->job = std::move(job);
  const std::lock_guard lock(core_->mutex);
  if (!core_->thread.joinable()) {
    core_->thread = std::thread([core = core_] { core->run_jobs(); });
  }
  core_->append(*waiter.release());
  if (core_->take_or_queue()) core_->pass_on();
}

bool Sequence::is_inside() const noexcept { return cluster::is_inside(core_.get()); }

}  // namespace onesum::cluster
