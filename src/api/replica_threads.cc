#include "api/replica_threads.h"

#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <pthread.h>

#include <onesum/error.h>

#include "base/interrupt.h"

namespace onesum::api {

ReplicaThreads::ReplicaThreads(int count) {
  threads_.reserve(static_cast<std::size_t>(count));
  try {
    for (int number = 0; number < count; ++number) {
      threads_.emplace_back([this, number] { work(number); });
      // For debuggers and top; the system takes at most 15 characters.
      pthread_setname_np(threads_.back().native_handle(), fmt::format("replica {}", number).c_str());
    }
  } catch (const std::system_error& error) {
    stop();
    throw Error(ErrorCode::kResourceExhausted,
                fmt::format("the system gave {} of {} threads for replicas: {}", threads_.size(), count,
                            error.what()));
  }
}

ReplicaThreads::~ReplicaThreads() { stop(); }

void ReplicaThreads::run(const std::function<void(int)>& task) {
  std::unique_lock lock(mutex_);
  task_ = &task;
  num_working_ = threads_.size();
  ++num_runs_;
  started_.notify_all();
  const auto is_over = [this] { return num_working_ == 0; };
  std::exception_ptr interrupt;
  while (is_interruptible() && !interrupt && !finished_.wait_for(lock, kInterruptInterval, is_over)) {
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      interrupt = std::current_exception();
    }
    lock.lock();
  }
  finished_.wait(lock, is_over);
  if (interrupt) std::rethrow_exception(interrupt);
}

void ReplicaThreads::work(int number) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t done = 0;; ++done) {
    started_.wait(lock, [&] { return is_stopping_ || num_runs_ != done; });
    if (is_stopping_) return;
    const std::function<void(int)>& task = *task_;
    lock.unlock();
    task(number);
    lock.lock();
    if (--num_working_ == 0) finished_.notify_one();
  }
}

void ReplicaThreads::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace onesum::api
