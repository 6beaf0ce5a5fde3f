// Messages for people, to standard error.
//
// What is shown is set by ONESUM_LOG (docs/configuration.md) or set_log_level. Nothing here throws, and
// everything may be called from any thread, also while the process ends. Messages name things as errors do;
// they are never written on the run path of a call.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace onesum {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };

// "error", "warning", …
std::string_view to_string(LogLevel level) noexcept;

void log(LogLevel level, std::string_view message) noexcept;

// Whether log() would show it: ask first where the message costs something to make.
bool is_logged(LogLevel level) noexcept;

// Replaces what ONESUM_LOG says, for the whole process.
void set_log_level(LogLevel level) noexcept;

// Messages that are worth saying a few times only. One static object per kind of message:
//   static LogLimit limit(10);
//   if (limit.admits(LogLevel::kInfo)) limit.log(LogLevel::kInfo, …);
class LogLimit {
 public:
  explicit constexpr LogLimit(int times) noexcept : left_(times) {}

  // Whether a message now would be shown.
  bool admits(LogLevel level) const noexcept;
  // Logs unless it was done often enough; the last time says so.
  void log(LogLevel level, std::string_view message) noexcept;

 private:
  // Relaxed everywhere: a mere counter, it publishes nothing.
  std::atomic<int> left_;
};

}  // namespace onesum
