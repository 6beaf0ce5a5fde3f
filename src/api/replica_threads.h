// The threads of a strategy's replicas: made once, used by every run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace onesum::api {

class ReplicaThreads {
 public:
  explicit ReplicaThreads(int count);  // throws resource_exhausted if the system refuses a thread
  ~ReplicaThreads();                   // waits for the threads to end; no run is under way
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Calls task(0) … task(count - 1), each on its own thread, always the same one, and waits for all. One run
  // at a time. The task does not throw; what ends the caller's patience (base/interrupt.h) is thrown when all
  // are done.
  void run(const std::function<void(int)>& task);

 private:
  void work(int number);
  void stop() noexcept;

  std::mutex mutex_;  // guards all below but threads_
  std::condition_variable started_;
  std::condition_variable finished_;
  const std::function<void(int)>* task_ = nullptr;
  std::uint64_t num_runs_ = 0;
  std::size_t num_working_ = 0;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace onesum::api
