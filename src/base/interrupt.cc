#include "base/interrupt.h"

#include <utility>

#include <onesum/interrupt.h>

namespace onesum {
namespace {

// Addressed without a call of the loader, in shared libraries too: a few bytes that it has in reserve.
[[gnu::tls_model("initial-exec")]] constinit thread_local const InterruptCheck* innermost = nullptr;

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check) noexcept
    : check_(std::move(check)), outer_(std::exchange(innermost, this)) {}

InterruptCheck::~InterruptCheck() { innermost = outer_; }

bool is_interruptible() noexcept { return innermost != nullptr; }

const InterruptCheck* innermost_check() noexcept { return innermost; }

void check_interrupt() {
  if (innermost != nullptr) (*innermost)();
}

}  // namespace onesum
