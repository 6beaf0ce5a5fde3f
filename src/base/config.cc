#include "base/config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <unistd.h>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum {
namespace {

constexpr std::string_view kPrefix = "ONESUM_";
constexpr std::uint64_t kMostThreads = 1024;
constexpr std::array<LogLevel, 4> kLogLevels = {LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo,
                                                LogLevel::kDebug};

[[noreturn]] void refuse(std::string_view name, std::string_view value, const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument, "environment variable " + std::string(name) + " is " +
                                               quoted(value) + "; expected " + expected);
}

void set_threads(Config& config, std::string_view name, std::string_view value) {
  const auto threads = parse_number(value, kMostThreads);
  if (!threads || *threads == 0) refuse(name, value, "a number from 1 to " + std::to_string(kMostThreads));
  config.threads = static_cast<unsigned>(*threads);
}

void set_pool_bytes(Config& config, std::string_view name, std::string_view value) {
  config.pool_bytes = parse_bytes(value);
  if (!config.pool_bytes) refuse(name, value, "a number of bytes such as 0, 65536, 64k, 512M or 4G");
}

void set_log(Config& config, std::string_view name, std::string_view value) {
  for (const LogLevel level : kLogLevels) {
    if (value == to_string(level)) {
      config.log_level = level;
      return;
    }
  }
  refuse(name, value, "error, warning, info or debug");
}

struct Setting {
  std::string_view name;
  void (*set)(Config&, std::string_view name, std::string_view value);
};
constexpr std::array<Setting, 3> kSettings = {{
    {"ONESUM_THREADS", set_threads},
    {"ONESUM_POOL_BYTES", set_pool_bytes},
    {"ONESUM_LOG", set_log},
}};

[[noreturn]] void refuse_name(std::string_view name) {
  std::array<std::string_view, kSettings.size()> known;
  std::ranges::transform(kSettings, known.begin(), &Setting::name);
  const auto likely = nearest(name, known);
  throw Error(ErrorCode::kInvalidArgument,
              "environment variable " + quoted(name) + " is not one of onesum's; " +
                  (likely ? "did you mean " + std::string(*likely) + "?" : "expected " + listed(known)));
}

std::variant<Config, Error> read_environment() {
  std::vector<std::string_view> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  try {
    return parse_config(entries);
  } catch (const Error& error) {
    return error;
  }
}

const std::variant<Config, Error>& environment_once() {
  static const std::variant<Config, Error> read = read_environment();
  return read;
}

}  // namespace

Config parse_config(std::span<const std::string_view> environment) {
  Config config;
  for (const std::string_view entry : environment) {
    if (!entry.starts_with(kPrefix)) continue;
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    const auto setting = std::ranges::find(kSettings, name, &Setting::name);
    if (setting == kSettings.end()) refuse_name(name);
    setting->set(config, name, value);
  }
  return config;
}

const Config& process_config() {
  const auto& read = environment_once();
  if (const auto* error = std::get_if<Error>(&read)) throw Error(*error);
  return std::get<Config>(read);
}

LogLevel configured_log_level() noexcept {
  try {
    const auto* config = std::get_if<Config>(&environment_once());
    return config != nullptr ? config->log_level : Config{}.log_level;
  } catch (...) {  // no memory to read it
    return Config{}.log_level;
  }
}

std::optional<std::size_t> parse_bytes(std::string_view text) noexcept {
  constexpr std::string_view kSuffixes = "kMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const auto suffix = std::ranges::find_if(
        kSuffixes, [&](char c) { return (text.back() | 0x20) == (c | 0x20); });  // 0x20: lower case
    if (suffix != kSuffixes.end()) {
      shift = 10 * static_cast<unsigned>(suffix - kSuffixes.begin() + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = parse_number(text, std::numeric_limits<std::size_t>::max() >> shift);
  if (!number) return std::nullopt;
  return static_cast<std::size_t>(*number) << shift;
}

}  // namespace onesum
