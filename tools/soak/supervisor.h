// Starts workers, and lets them die.
#pragma once

#include <chrono>

namespace onesum::soak {

// One job after the other, for so long. Prints what was counted. True if no result was wrong, nobody hung and
// every error was one that a fault explains.
bool supervise(std::chrono::seconds time, unsigned seed);

}  // namespace onesum::soak
