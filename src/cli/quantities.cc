#include "cli/quantities.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/config.h"
#include "base/text.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A number from 0 followed by one of the units; nothing for anything else.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto unit = std::ranges::find(units, rest, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return number * unit->factor;
}

}  // namespace

std::size_t parse_size(std::string_view option, std::string_view text) {
  constexpr std::size_t kMax = std::size_t{1} << 50;
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes > kMax) {
    throw UsageError(
        fmt::format("{}: {} is no size; expected bytes such as 4, 64k or 8M (factors of 1024; at most 1024T)",
                    option, quoted(text)));
  }
  return *bytes;
}

std::vector<std::size_t> parse_size_list(std::string_view option, std::string_view text) {
  std::vector<std::size_t> list;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    list.push_back(parse_size(option, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

std::size_t parse_count(std::string_view option, std::string_view text, std::size_t min, std::size_t max) {
  const auto number = parse_number(text, max);
  if (!number || *number < min) {
    throw UsageError(fmt::format("{}: {} is no number from {} to {}", option, quoted(text), min, max));
  }
  return *number;
}

double parse_seconds(std::string_view option, std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0) || seconds > 86400) {
    throw UsageError(
        fmt::format("{}: {} is no number of seconds above 0, such as 0.3", option, quoted(text)));
  }
  return seconds;
}

double parse_duration(std::string_view option, std::string_view text) {
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const std::optional<double> seconds = parse_with_unit(text, kUnits);
  if (!seconds || *seconds > 86400) {
    throw UsageError(fmt::format("{}: {} is no duration; expected a number with ns, us, ms or s, such as 5us",
                                 option, quoted(text)));
  }
  return *seconds;
}

double parse_rate(std::string_view option, std::string_view text) {
  constexpr Unit kUnits[] = {{"B/s", 1},          {"kB/s", 1e3},       {"MB/s", 1e6},
                             {"GB/s", 1e9},       {"TB/s", 1e12},      {"kbit/s", 1e3 / 8},
                             {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}};
  const std::optional<double> rate = parse_with_unit(text, kUnits);
  if (!rate || *rate < 1) {
    throw UsageError(
        fmt::format("{}: {} is no speed; expected B/s, kB/s, MB/s, GB/s or TB/s (or bit/s with k, M, G or T; "
                    "factors of 1000), such as 10GB/s",
                    option, quoted(text)));
  }
  return *rate;
}

std::size_t elements_in(std::string_view option, std::size_t bytes, DType dtype) {
  const std::size_t size = size_of(dtype);
  if (bytes == 0 || bytes % size != 0) {
    throw UsageError(fmt::format("{}: {} bytes are no whole number of {} elements of {} bytes", option, bytes,
                                 to_string(dtype), size));
  }
  return bytes / size;
}

}  // namespace onesum::cli
