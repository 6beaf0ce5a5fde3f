// What workers count, in memory that they share with the supervisor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace onesum::soak {

inline constexpr int kMostWorkers = 6;

// Relaxed everywhere: mere counts.
struct Counts {
  std::atomic<std::uint64_t> calls{0};       // that returned
  std::atomic<std::uint64_t> wrong{0};       // of them, with a wrong result
  std::atomic<std::uint64_t> verdicts{0};    // calls that failed as they should
  std::atomic<std::uint64_t> shrinks{0};     // that succeeded
  std::atomic<std::uint64_t> expelled{0};    // workers that woke and were told so
  std::atomic<std::uint64_t> cut_off{0};     // workers that were told that they are too few
  std::atomic<std::uint64_t> unexpected{0};  // errors of another kind
  std::array<std::atomic<std::uint64_t>, kMostWorkers> progress{};  // of each worker of the job
};

}  // namespace onesum::soak
