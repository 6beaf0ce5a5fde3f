// Waiting for another thread or process that will not be long.
#pragma once

#include <sched.h>

namespace onesum::cli {

// Spins for a while, then lets others have the core: with fewer cores than threads a spinning one would hold
// up the one it waits for.
template <class Condition>
void spin_until(Condition is_met, int most_spins = 2000) {
  for (int spins = 0; !is_met(); ++spins) {
    if (spins < most_spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }
}

}  // namespace onesum::cli
