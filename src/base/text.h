// Text for messages: quoting what a caller gave, and guessing what was meant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace onesum {

// `text` in double quotes, fit for one line of a message: what is not printable ASCII is escaped (\n, \x07),
// and beyond 200 characters it is cut, with the full length named.
// (An object, so that std::quoted is never meant where a std::string is passed.)
struct Quoted {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quoted quoted;

// Of `names`, the one that `text` is likely to mean: the only one that continues it, else the closest in
// single-character edits, case aside (of equally close ones the first); nullopt if all are far off.
std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names);

// "a, b or c".
std::string listed(std::span<const std::string_view> names);

// A whole decimal number without sign, at most `max`; nullopt for anything else, also the empty text.
std::optional<std::uint64_t> parse_number(std::string_view digits, std::uint64_t max) noexcept;

}  // namespace onesum
