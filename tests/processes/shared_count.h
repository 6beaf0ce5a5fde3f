// A number that a process shares with those that it forks.
#pragma once

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include <sys/mman.h>

namespace onesum::testing {

class SharedCount {
 public:
  SharedCount()
      : count_(new(::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0)) {}
  ~SharedCount() { ::munmap(count_, sizeof *count_); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add_one() const { ++*count_; }
  int value() const { return *count_; }

  // False: it does not come to that within a minute.
  bool comes_to(int least) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (*count_ < least && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *count_ >= least;
  }

 private:
  std::atomic<int>* count_;
};

}  // namespace onesum::testing
