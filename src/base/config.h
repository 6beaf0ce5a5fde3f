// Settings of the process, read from its environment once.
//
// The variables are listed in docs/configuration.md. One that begins with ONESUM_ and is not among them is an
// error: a misspelt setting must not go unnoticed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/log.h"

namespace onesum {

struct Config {
  // ONESUM_THREADS; absent: as many as the cores the process may use.
  std::optional<unsigned> threads;
  // ONESUM_POOL_BYTES, of freed memory kept for reuse; absent: the engine's choice.
  std::optional<std::size_t> pool_bytes;
  // ONESUM_LOG
  LogLevel log_level = LogLevel::kWarning;
  friend bool operator==(const Config&, const Config&) = default;
};

// From entries of the form NAME=value; those of other names are passed over. Throws invalid_argument naming
// the variable, its value and what is expected.
Config parse_config(std::span<const std::string_view> environment);

// The environment as it was when one of these was first called. A bad one makes every call throw the same
// invalid_argument; the log level is then that of an empty environment.
const Config& process_config();
LogLevel configured_log_level() noexcept;

// A number of bytes: digits, then nothing or k, M, G or T (either case; powers of 1024). nullopt for anything
// else.
std::optional<std::size_t> parse_bytes(std::string_view text) noexcept;

}  // namespace onesum
