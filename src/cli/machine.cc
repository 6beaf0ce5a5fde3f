#include "cli/machine.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sys/sysinfo.h>

#include "base/config.h"
#include "base/machine.h"
#include "base/text.h"

namespace onesum::cli {
namespace {

// The text after "key :" in a file of such lines, as in /proc.
std::optional<std::string> field_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> cpu_model() { return field_of("/proc/cpuinfo", "model name"); }

std::vector<std::string> cpu_features() {
  constexpr std::string_view kOfInterest[] = {"sse2",        "sse4_2",  "avx",      "avx2",     "f16c",
                                              "fma",         "avx512f", "avx512bw", "avx512vl", "avx512_bf16",
                                              "avx512_fp16", "asimd",   "sve",      "sve2"};
  auto flags = field_of("/proc/cpuinfo", "flags");
  if (!flags) flags = field_of("/proc/cpuinfo", "Features");
  std::vector<std::string> found;
  std::istringstream words(flags.value_or(""));
  for (std::string word; words >> word;) {
    if (std::ranges::find(kOfInterest, word) != std::end(kOfInterest)) found.push_back(word);
  }
  return found;
}

std::optional<std::size_t> memory_field(const char* path, std::string_view key) {
  const auto text = field_of(path, key);  // "24689 kB"
  if (!text) return std::nullopt;
  const auto kibibytes = parse_number(text->substr(0, text->find(' ')), std::size_t{1} << 50);
  if (!kibibytes) return std::nullopt;
  return *kibibytes << 10;
}

std::optional<std::size_t> total_memory() { return memory_field("/proc/meminfo", "MemTotal"); }

std::optional<std::size_t> available_memory() { return memory_field("/proc/meminfo", "MemAvailable"); }

unsigned online_cores() { return std::max(available_cores(), static_cast<unsigned>(get_nprocs())); }

unsigned library_threads() { return process_config().threads.value_or(available_cores()); }

}  // namespace onesum::cli
