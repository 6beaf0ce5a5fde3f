#include "api/work.h"

#include <algorithm>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "api/cluster_state.h"
#include "base/clock.h"
#include "base/log.h"

namespace onesum {
namespace {

// Whoever is inside a call of the sequence cannot wait for one that comes after it.
bool would_wait_for_itself(const Work::State& state) {
  return !state.done && state.cluster->state().sequence.is_inside();
}

std::unique_lock<std::mutex> locked_to_wait(const std::shared_ptr<Work::State>& state) {
  if (!state) throw Error(ErrorCode::kInvalidArgument, "a Work that was moved away has nothing to wait for");
  std::unique_lock lock(state->mutex);
  if (would_wait_for_itself(*state)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "a Work was waited for from inside a call on the same cluster (from an accumulation_fn), which it "
        "cannot overtake");
  }
  return lock;
}

void log_unseen(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    log(LogLevel::kError, std::string("a Work that nobody waited for failed: ") + e.what());
  } catch (...) {
    log(LogLevel::kError, "a Work that nobody waited for failed with an exception of unknown type");
  }
}

void finish(std::shared_ptr<Work::State> state) noexcept {
  if (!state) return;
  std::unique_lock lock(state->mutex);
  if (would_wait_for_itself(*state)) {
    log(LogLevel::kError,
        "a Work was dropped inside a call on the same cluster (in an accumulation_fn); it goes on");
    return;
  }
  state->finished.wait(lock, [&] { return state->done; });
  if (state->error && !state->asked) log_unseen(state->error);
}

}  // namespace

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
Work::Work(Work&&) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) finish(std::exchange(state_, std::move(other.state_)));
  return *this;
}

Work::~Work() { finish(std::move(state_)); }

void Work::wait() {
  std::unique_lock lock = locked_to_wait(state_);
  state_->finished.wait(lock, [this] { return state_->done; });
  state_->asked = true;
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::wait_for(std::chrono::nanoseconds longest) {
  std::unique_lock lock = locked_to_wait(state_);
  const Clock::time_point start = now();
  const Clock::time_point until = start + std::min(longest, Clock::time_point::max() - start);
  return state_->finished.wait_until(lock, until, [this] { return state_->done; });
}

void Work::when_done(std::function<void()> fn) {
  if (state_) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->done) return state_->when_done.push_back(std::move(fn));
  }
  fn();
}

bool Work::is_done() const noexcept {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

std::vector<Mirrored> Work::results() {
  wait();
  return state_->results;
}

namespace api {

Work start_work(const Cluster& cluster, std::function<std::vector<Mirrored>()> call) {
  auto state = std::make_shared<Work::State>(cluster);
  cluster.state().sequence.post([state, call = std::move(call)]() mutable {
    std::vector<Mirrored> results;
    std::exception_ptr error;
    try {
      results = call();
    } catch (...) {
      error = std::current_exception();
    }
    call = nullptr;  // lets go of the caller's tensors before the caller hears that they are free
    std::vector<std::function<void()>> when_done;
    {
      const std::lock_guard lock(state->mutex);
      state->results = std::move(results);
      state->error = error;
      state->cluster.reset();
      state->done = true;
      state->finished.notify_all();
      when_done = std::move(state->when_done);
    }
    for (const std::function<void()>& fn : when_done) fn();
  });
  return Work(std::move(state));
}

}  // namespace api
}  // namespace onesum
