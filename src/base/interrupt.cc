#include "base/interrupt.h"

#include <utility>

#include <onesum/interrupt.h>

namespace onesum {
namespace {

thread_local const InterruptCheck* innermost = nullptr;

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
