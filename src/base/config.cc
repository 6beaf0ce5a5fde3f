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

constexpr std::array<std::string_view, 4> kTransports = {"auto", "shm", "tcp", "ucx"};

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

void set_outbox_bytes(Config& config, std::string_view name, std::string_view value) {
  const auto bytes = parse_bytes(value);
  if (!bytes) refuse(name, value, "a number of bytes such as 1M, 64M or 1G");
  config.outbox_bytes = *bytes;
}

void set_cuda_plugin(Config& config, std::string_view name, std::string_view value) {
  if (value.empty()) refuse(name, value, "the path of libonesum_cuda.so");
  config.cuda_plugin = value;
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

void set_report(Config& config, std::string_view name, std::string_view value) {
  config.report = parse_report_target(value);
  if (!config.report) refuse(name, value, "a descriptor and an inode such as 5:123, as onesum run sets it");
}

void set_rank(Config& config, std::string_view name, std::string_view value) {
  const auto rank = parse_number(value, kMostWorkers - 1);
  if (!rank) refuse(name, value, "a number from 0 to " + std::to_string(kMostWorkers - 1));
  config.rank = static_cast<int>(*rank);
}

void set_size(Config& config, std::string_view name, std::string_view value) {
  const auto size = parse_number(value, kMostWorkers);
  if (!size || *size == 0) refuse(name, value, "a number from 1 to " + std::to_string(kMostWorkers));
  config.size = static_cast<int>(*size);
}

void set_job(Config& config, std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 64;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (value.empty() || value.size() > kLongest || !std::ranges::all_of(value, is_allowed))
    refuse(name, value, "1 to 64 letters, digits, '.', '_' and '-'");
  config.job = value;
}

void set_address(Config& config, std::string_view name, std::string_view value) {
  config.address = parse_host_port(value);
  if (!config.address) refuse(name, value, std::string(kHostPortExpected));
}

void set_secret(Config& config, std::string_view name, std::string_view value) {
  if (value.empty()) refuse(name, value, "a secret that all workers share");
  config.secret = value;
}

void set_secret_file(Config& config, std::string_view name, std::string_view value) {
  if (value.empty()) refuse(name, value, "the path of a file that only its owner can read");
  config.secret_file = value;
}

void set_transport(Config& config, std::string_view name, std::string_view value) {
  const auto found = std::ranges::find(kTransports, value);
  if (found == kTransports.end()) refuse(name, value, listed(kTransports));
  config.transport = static_cast<TransportChoice>(found - kTransports.begin());
}

void set_checksums(Config& config, std::string_view name, std::string_view value) {
  if (value != "on" && value != "off") refuse(name, value, "on or off");
  config.checksums = value == "on";
}

void set_machine(Config& config, std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 255;
  if (value.empty() || value.size() > kLongest) {
    refuse(name, value, "1 to 255 characters, the same on all workers of a machine");
  }
  config.machine = value;
}

// Seconds, with at most three decimals.
std::optional<std::chrono::milliseconds> parse_timeout(std::string_view text) {
  constexpr std::uint64_t kMostSeconds = 1'000'000;
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  if (decimals.size() > 3 || (point < text.size() && decimals.empty())) return std::nullopt;
  decimals.resize(3, '0');
  const auto seconds = parse_number(text.substr(0, point), kMostSeconds);
  const auto milliseconds = parse_number(decimals, 999);
  if (!seconds || !milliseconds || *seconds + *milliseconds == 0) return std::nullopt;
  return std::chrono::milliseconds(*seconds * 1000 + *milliseconds);
}

std::chrono::milliseconds timeout(std::string_view name, std::string_view value) {
  const auto parsed = parse_timeout(value);
  if (!parsed) refuse(name, value, "seconds such as 60 or 0.5, more than 0 and at most 1000000");
  return *parsed;
}

void set_progress_timeout(Config& config, std::string_view name, std::string_view value) {
  config.progress_timeout = timeout(name, value);
}

void set_join_timeout(Config& config, std::string_view name, std::string_view value) {
  config.join_timeout = timeout(name, value);
}

void set_fault(Config& config, std::string_view name, std::string_view value) {
  if (value.empty()) refuse(name, value, "a fault");
  config.fault = value;
}

struct Setting {
  std::string_view name;
  void (*set)(Config&, std::string_view name, std::string_view value);
};
constexpr std::array<Setting, 18> kSettings = {{
    {"ONESUM_THREADS", set_threads},
    {"ONESUM_POOL_BYTES", set_pool_bytes},
    {"ONESUM_CUDA_PLUGIN", set_cuda_plugin},
    {"ONESUM_LOG", set_log},
    {"ONESUM_RANK", set_rank},
    {"ONESUM_SIZE", set_size},
    {"ONESUM_JOB", set_job},
    {"ONESUM_ADDRESS", set_address},
    {"ONESUM_SECRET", set_secret},
    {"ONESUM_SECRET_FILE", set_secret_file},
    {"ONESUM_TRANSPORT", set_transport},
    {"ONESUM_CHECKSUMS", set_checksums},
    {"ONESUM_OUTBOX_BYTES", set_outbox_bytes},
    {"ONESUM_MACHINE", set_machine},
    {"ONESUM_PROGRESS_TIMEOUT", set_progress_timeout},
    {"ONESUM_JOIN_TIMEOUT", set_join_timeout},
    {"ONESUM_FAULT", set_fault},
    {"ONESUM_REPORT", set_report},
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
  const std::vector<std::string> entries = environment_entries();
  try {
    return parse_config(std::vector<std::string_view>(entries.begin(), entries.end()));
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
  if (config.secret && config.secret_file) {
    refuse("ONESUM_SECRET_FILE", *config.secret_file, "it to be unset, because ONESUM_SECRET is set");
  }
  return config;
}

std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::string_view to_string(TransportChoice choice) noexcept {
  return kTransports[static_cast<std::size_t>(choice)];
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
