#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace onesum {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Levenshtein distance, one row of the table at a time.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Quoted::operator()(std::string_view text) const {
  constexpr std::size_t kLongest = 200;  // characters shown, escapes counted as such
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  std::size_t shown = 0;
  for (; shown < text.size() && result.size() <= kLongest; ++shown) {
    const char c = text[shown];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  result += '"';
  if (shown < text.size()) result += "… (" + std::to_string(text.size()) + " characters)";
  return result;
}

std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names) {
  constexpr std::size_t kLongest = 64;  // no name is longer; keeps the table small for hostile text
  if (text.size() > kLongest) return std::nullopt;
  // The beginning of a single name is that name cut short.
  const auto continues = [text](std::string_view name) {
    return name.size() > text.size() && name.starts_with(text);
  };
  if (!text.empty() && std::ranges::count_if(names, continues) == 1)
    return *std::ranges::find_if(names, continues);
  std::optional<std::string_view> best;
  std::size_t fewest = std::max<std::size_t>(2, text.size() / 2) + 1;
  for (const std::string_view name : names) {
    const std::size_t edits = edits_between(text, name);
    if (edits < fewest) {
      fewest = edits;
      best = name;
    }
  }
  return best;
}

std::string listed(std::span<const std::string_view> names) {
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? " or " : ", ";
    result += names[i];
  }
  return result;
}

std::optional<std::uint64_t> parse_number(std::string_view digits, std::uint64_t max) noexcept {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, problem] =
      std::from_chars(digits.data(), end, number);  // takes no sign for unsigned types
  if (problem != std::errc{} || rest != end || number > max) return std::nullopt;
  return number;
}

}  // namespace onesum
