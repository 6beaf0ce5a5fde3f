#include "emulated_gpu/stream.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "emulated_gpu/settings.h"

namespace onesum::emulated {

std::shared_ptr<Stream> Stream::start(const Traits& traits) {
  std::shared_ptr<Stream> result(new Stream(traits));
  std::thread([result] { result->run(); }).detach();
  return result;
}

void Stream::push(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

bool Stream::is_done(std::uint64_t position) const {
  const std::lock_guard lock(mutex_);
  return done_ >= position;
}

void Stream::wait(std::uint64_t position) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= position; });
}

void Stream::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

void Stream::run() {
  std::mt19937_64 random(settings().seed * 0x9e3779b97f4a7c15U + traits_.number);
  const std::uint64_t most_us = settings().delay_us;
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_closed_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    if (most_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % (most_us + 1)));
    work();
    work = nullptr;  // what it holds is gone before anybody learns that it ran
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
  }
}

}  // namespace onesum::emulated
