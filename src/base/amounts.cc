#include "base/amounts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace onesum {
namespace {

// "5 to 9" for each run of neighbours.
std::vector<std::string> runs_of(std::span<const std::size_t> numbers) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    runs.push_back(format_range(numbers[first], numbers[last]));
    first = last + 1;
  }
  return runs;
}

}  // namespace

std::string format_number(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::size_t scale = 1;
  while (unit + 1 < std::size(kUnits) && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, kUnits[unit]);
  return fmt::format("{} {}", format_number(static_cast<double>(bytes) / static_cast<double>(scale)),
                     kUnits[unit]);
}

std::string format_time(double seconds) {
  if (seconds < 0.9995e-6) return format_number(seconds * 1e9) + " ns";
  if (seconds < 0.9995e-3) return format_number(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return format_number(seconds * 1e3) + " ms";
  return format_number(seconds) + " s";
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string format_range(std::size_t least, std::size_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string numbered(std::string_view noun, std::span<const std::size_t> numbers) {
  constexpr std::size_t kMostRuns = 4;
  const std::vector<std::string> runs = runs_of(numbers);
  std::string text = fmt::format("{}{} ", noun, numbers.size() == 1 ? "" : "s");
  if (runs.size() > kMostRuns) {
    return text + fmt::format("{}, {}, {}, … {}", runs[0], runs[1], runs[2], runs.back());
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

std::vector<Alike> grouped(std::size_t count, const std::function<std::string(std::size_t)>& words_about) {
  std::vector<Alike> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string words = words_about(i);
    auto found = std::ranges::find(all, words, &Alike::words);
    if (found == all.end()) found = all.insert(found, {std::move(words), {}});
    found->numbers.push_back(i);
  }
  return all;
}

}  // namespace onesum
