// Grammar of specs in text:
//
//   specs = item { ":" limit ":" item }
//   item  = alg [ "#" shards ]
//   alg   = level [ "/" level ]
//   limit = digits [ "k" | "M" | "G" | "T" ]      in either case; powers of 1024
#include "planner/spec.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/text.h"
#include "collective/all_reduce.h"

namespace onesum::planner {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr int kMaxShards = 1024;
constexpr std::string_view kSuffixes = "kMGT";
constexpr std::int64_t kLargestLimit = std::numeric_limits<std::int64_t>::max();

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::string name_of(std::size_t index) { return fmt::format("all_reduce_spec[{}]", index); }

// The algorithms, which can be levels of a hierarchy, and then the name that cannot.
std::vector<std::string_view> known_names() {
  const auto algorithms = collective::algorithm_names();
  std::vector<std::string_view> names(algorithms.begin(), algorithms.end());
  names.push_back(kAuto);
  return names;
}

bool is_known(std::string_view name) noexcept { return name == kAuto || collective::algorithm_named(name); }

// "; did you mean nccl/xring?" if the levels are close to known ones.
std::string guess(const Levels& levels) {
  const auto closest = [](std::string_view level) {
    return is_known(level) ? std::optional(level) : nearest(level, known_names());
  };
  const auto inside = closest(levels.inside);
  if (!inside) return "";
  if (levels.across.empty()) return fmt::format("; did you mean {}?", *inside);
  const auto across = closest(levels.across);
  if (!across || *inside == kAuto || *across == kAuto) return "";
  return fmt::format("; did you mean {}/{}?", *inside, *across);
}

void check_shards(const AllReduceSpec& spec, const std::string& what) {
  if (spec.shards < 1 || spec.shards > kMaxShards) {
    refuse("{} ({}) has {} shards; expected 1 to {}", what, spec.alg, spec.shards, kMaxShards);
  }
}

// Limits ascend strictly; the last one, and no other, is none.
void check_limits(std::span<const AllReduceSpec> specs) {
  for (std::size_t i = 0; i + 1 < specs.size(); ++i) {
    if (specs[i].limit < 0) {
      refuse("{} ({}) has limit {}, which is none, and leaves nothing for {} ({}); only the last one is -1",
             name_of(i), specs[i].alg, specs[i].limit, name_of(i + 1), specs[i + 1].alg);
    }
    if (i > 0 && specs[i].limit <= specs[i - 1].limit) {
      refuse("{} ({}) has limit {} after limit {} of {}; limits must increase from one to the next",
             name_of(i), specs[i].alg, specs[i].limit, specs[i - 1].limit, name_of(i - 1));
    }
  }
  if (specs.back().limit >= 0) {
    refuse("{} ({}) is the last one and has limit {}; expected -1 there, so that every tensor is taken",
           name_of(specs.size() - 1), specs.back().alg, specs.back().limit);
  }
}

// What is between two colons, and the rest.
std::string_view next_part(std::string_view& rest) {
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view part = rest.substr(0, colon);
  rest.remove_prefix(colon);
  return part;
}

AllReduceSpec parse_item(std::string_view text, const std::string& what) {
  AllReduceSpec spec;
  const std::size_t hash = std::min(text.find('#'), text.size());
  const std::string_view alg = text.substr(0, hash);
  check_algorithm(alg, what);
  spec.alg = alg;
  if (hash == text.size()) return spec;
  const std::string_view digits = text.substr(hash + 1);
  const auto shards = parse_number(digits, kMaxShards);
  if (!shards || *shards == 0) {
    refuse("{} ({}) has {} shards; expected a number from 1 to {} after '#'", what, spec.alg, quoted(digits),
           kMaxShards);
  }
  spec.shards = static_cast<int>(*shards);
  return spec;
}

// 1024 to the power of the suffix at the end of `text`, which is taken off.
std::uint64_t take_unit(std::string_view& text) {
  constexpr std::string_view kOtherCase = "Kmgt";
  if (text.empty()) return 1;
  const std::size_t power = std::min(kSuffixes.find(text.back()), kOtherCase.find(text.back()));
  if (power == std::string_view::npos) return 1;
  text.remove_suffix(1);
  return std::uint64_t{1} << (10 * (power + 1));
}

std::int64_t parse_limit(std::string_view text, const std::string& what) {
  std::string_view digits = text;
  const std::uint64_t unit = take_unit(digits);
  const auto number = parse_number(digits, static_cast<std::uint64_t>(kLargestLimit) / unit);
  if (!number) {
    refuse("{} has limit {}; expected a number of bytes up to {}, such as 2048, 2k or 64M", what,
           quoted(text), kLargestLimit);
  }
  return static_cast<std::int64_t>(*number * unit);
}

std::string text_of_limit(std::int64_t limit) {
  std::size_t power = 0;
  while (limit > 0 && limit % 1024 == 0 && power < kSuffixes.size()) {
    limit /= 1024;
    ++power;
  }
  return power == 0 ? fmt::format("{}", limit) : fmt::format("{}{}", limit, kSuffixes[power - 1]);
}

}  // namespace

Levels levels_of(std::string_view alg) noexcept {
  const std::size_t slash = alg.find('/');
  if (slash == std::string_view::npos) return {alg, {}};
  return {alg.substr(0, slash), alg.substr(slash + 1)};
}

bool has_level(const AllReduceSpec& spec, std::string_view level) noexcept {
  const Levels levels = levels_of(spec.alg);
  return levels.inside == level || levels.across == level;
}

void check_algorithm(std::string_view alg, const std::string& what) {
  const auto slashes = std::ranges::count(alg, '/');
  const Levels levels = levels_of(alg);
  if (alg.empty()) refuse("{} has no algorithm; expected {}", what, listed(known_names()));
  if (slashes > 1) {
    refuse("{} has algorithm {} with {} slashes; expected one at most: inside workers / across workers", what,
           quoted(alg), slashes);
  }
  if (slashes == 1 && (levels.inside == kAuto || levels.across == kAuto)) {
    refuse("{} has algorithm {}; auto chooses all levels and must stand alone", what, quoted(alg));
  }
  if (!is_known(levels.inside) || (slashes == 1 && !is_known(levels.across))) {
    refuse("{} has algorithm {}, which is not known{} Expected {}, or two of them (not auto) joined by '/'",
           what, quoted(alg), guess(levels).empty() ? "." : guess(levels), listed(known_names()));
  }
}

std::vector<AllReduceSpec> valid_specs(std::vector<AllReduceSpec> specs) {
  if (specs.empty()) refuse("all_reduce_spec is empty; expected one or more, such as \"pscpu/pscpu#2\"");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    check_algorithm(specs[i].alg, name_of(i));
    check_shards(specs[i], name_of(i));
  }
  check_limits(specs);
  specs.back().limit = -1;
  return specs;
}

std::vector<AllReduceSpec> parse_specs(std::string_view text) {
  if (text.empty()) refuse("all_reduce_spec is empty; expected text such as \"pscpu:2k:pscpu#2:64k:xring\"");
  std::vector<AllReduceSpec> specs;
  std::string_view rest = text;
  while (true) {
    const std::string what = fmt::format("{} of {}", name_of(specs.size()), quoted(text));
    specs.push_back(parse_item(next_part(rest), what));
    if (rest.empty()) break;
    rest.remove_prefix(1);
    specs.back().limit = parse_limit(next_part(rest), what);
    if (rest.empty()) {
      refuse("{} has a limit and nothing follows; expected ':' and the algorithm of larger tensors", what);
    }
    rest.remove_prefix(1);
  }
  check_limits(specs);
  return specs;
}

std::string text_of_specs(std::span<const AllReduceSpec> specs) {
  std::string text;
  for (const AllReduceSpec& spec : specs) {
    text += spec.alg;
    if (spec.shards != 1) text += fmt::format("#{}", spec.shards);
    if (spec.limit >= 0) text += fmt::format(":{}:", text_of_limit(spec.limit));
  }
  return text;
}

}  // namespace onesum::planner
