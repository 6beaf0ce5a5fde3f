// Time for deadlines and reports: it never goes back, and says nothing of the date.
#pragma once

#include <chrono>

namespace onesum {

using Clock = std::chrono::steady_clock;

inline Clock::time_point now() noexcept { return Clock::now(); }

}  // namespace onesum
