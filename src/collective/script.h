// A lane written a little at a time: a coroutine that pauses after every stretch of steps.
//
// A plan that is stored runs its scripts to the end; a plan that is only looked at, such as a ring of
// thousands of workers, resumes each when its steps are wanted and drops them afterwards.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace onesum::collective {

class Script {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Script get_return_object() { return Script(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() { error = std::current_exception(); }
    std::exception_ptr error;
  };

  explicit Script(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Script(Script&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Script& operator=(Script&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script() {
    if (handle_) handle_.destroy();
  }

  // Writes the next stretch. False: there was none left.
  bool resume() {
    if (handle_.done()) return false;
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return true;
  }
  void finish() {
    while (resume()) {
    }
  }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  Handle handle_;
};

// Where a script pauses: co_await pause.
inline constexpr std::suspend_always pause;

}  // namespace onesum::collective
