// How much memory this process holds that no file backs: its own, and what it shares with other workers.
// Everything may be unknown.
#pragma once

#include <cstddef>
#include <optional>

namespace onesum::cli {

std::optional<std::size_t> resident_memory();  // now, in bytes

// The highest since the last reset; unknown where the system cannot reset it.
bool reset_peak_memory() noexcept;
std::optional<std::size_t> peak_memory();

}  // namespace onesum::cli
