#include "base/log.h"

#include <cstdio>
#include <memory>
#include <string>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/config.h"

namespace onesum {
namespace {

constexpr int kNotReadYet = -1;

// Relaxed everywhere: readers need the number alone, and reading the environment twice gives the same.
std::atomic<int> g_level{kNotReadYet};

spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::err;
}

// Never destroyed, so that destructors of static objects may log; outside spdlog's registry, which is the
// user's.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto made = std::make_unique<spdlog::logger>("onesum", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %n %l: %v");
    made->set_level(spdlog::level::debug);
    made->flush_on(spdlog::level::debug);
    return made.release();
  }();
  return *instance;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "unknown";
}

bool is_logged(LogLevel level) noexcept {
  int shown = g_level.load(std::memory_order_relaxed);
  if (shown == kNotReadYet) {
    shown = static_cast<int>(configured_log_level());
    int expected = kNotReadYet;
    if (!g_level.compare_exchange_strong(expected, shown, std::memory_order_relaxed)) shown = expected;
  }
  return static_cast<int>(level) <= shown;
}

void set_log_level(LogLevel level) noexcept {
  g_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) noexcept {
  if (!is_logged(level)) return;
  try {
    logger().log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
  } catch (...) {  // must not end the call that had something to say
    std::fputs("onesum error: a message could not be written\n", stderr);
  }
}

bool LogLimit::admits(LogLevel level) const noexcept {
  return left_.load(std::memory_order_relaxed) > 0 && is_logged(level);
}

void LogLimit::log(LogLevel level, std::string_view message) noexcept {
  if (!admits(level)) return;
  const int left = left_.fetch_sub(1, std::memory_order_relaxed);
  if (left > 1) {
    onesum::log(level, message);
  } else if (left == 1) {
    try {
      onesum::log(level, std::string(message) + " (further messages of this kind are left out)");
    } catch (...) {  // no memory for the longer text
      onesum::log(level, message);
    }
  }
}

}  // namespace onesum
