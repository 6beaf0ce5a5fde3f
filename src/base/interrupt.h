// Whether the caller of a call that waits wants it to end (onesum/interrupt.h).
#pragma once

#include <chrono>

namespace onesum {

class InterruptCheck;

// How long a wait may go on without asking.
inline constexpr std::chrono::milliseconds kInterruptInterval{100};

// Whether the caller is to be asked at all.
bool is_interruptible() noexcept;

// The check that is asked, for whoever adds one of its own; null: none.
const InterruptCheck* innermost_check() noexcept;

// Asks; throws what the caller's check throws. Not under a lock that the caller's threads may want.
void check_interrupt();

}  // namespace onesum
