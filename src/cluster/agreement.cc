#include "cluster/agreement.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include "base/text.h"

namespace onesum::cluster {
namespace {

const Setting* found(const std::vector<Setting>& settings, const std::string& name) {
  const auto it = std::ranges::find(settings, name, &Setting::name);
  return it == settings.end() ? nullptr : &*it;
}

// As a user writes it, unless that would be misread.
std::string shown(const std::string& value) {
  const bool is_plain =
      !value.empty() && value.size() < 100 &&
      std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != ','; });
  return is_plain ? value : quoted(value);
}

std::optional<std::string> setting_difference(const Hello& own, const Hello& other) {
  for (const Setting& setting : other.settings) {
    const Setting* const ours = found(own.settings, setting.name);
    if (ours != nullptr && ours->value == setting.value) continue;
    return fmt::format("rank {} has {}={}, rank 0 has {}", other.rank, shown(setting.name),
                       shown(setting.value), ours == nullptr ? "no such setting" : shown(ours->value));
  }
  for (const Setting& setting : own.settings) {
    if (found(other.settings, setting.name) != nullptr) continue;
    return fmt::format("rank {} has no setting {}, rank 0 has {}={}", other.rank, shown(setting.name),
                       shown(setting.name), shown(setting.value));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Hello& own, const Hello& other) {
  if (other.version != own.version || other.protocol != own.protocol) {
    const bool same_version = other.version == own.version;
    return fmt::format("rank {} runs onesum {}{}, rank 0 runs onesum {}{}; all workers need the same version",
                       other.rank, shown(other.version),
                       same_version ? fmt::format(" (protocol {})", other.protocol) : "", shown(own.version),
                       same_version ? fmt::format(" (protocol {})", own.protocol) : "");
  }
  if (other.job != own.job) {
    return fmt::format("rank {} belongs to job {}, rank 0 to job {}", other.rank, quoted(other.job),
                       quoted(own.job));
  }
  if (other.size != own.size) {
    return fmt::format("rank {} was started as one of {} workers, rank 0 as one of {}", other.rank,
                       other.size, own.size);
  }
  if (other.rank >= own.size) {
    return fmt::format("a worker has rank {}, expected 0 to {}", other.rank, own.size - 1);
  }
  return setting_difference(own, other);
}

std::string listed_ranks(const std::vector<int>& ranks) {
  std::string result;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < i + 2) last = i;  // two neighbours are not a range
    if (!result.empty()) result += ", ";
    result += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return result;
}

std::string in_seconds(Clock::duration duration) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace onesum::cluster
