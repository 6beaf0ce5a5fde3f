#include "plan/text_line.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A word as a message may show it: short, printable.
std::string shown(std::string_view word) {
  constexpr std::size_t kLongest = 40;
  std::string text(word.substr(0, kLongest));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return word.size() > kLongest ? text + "..." : text;
}

}  // namespace

TextLine::TextLine(std::size_t number, std::string_view text) : number_(number), rest_(trimmed(text)) {
  advance();
}

void TextLine::advance() {
  rest_ = trimmed(rest_);
  std::size_t length = 0;
  if (rest_.starts_with("->") || rest_.starts_with("..")) {
    length = 2;
  } else {
    while (length < rest_.size() && is_word(rest_[length])) ++length;
    if (length == 0 && !rest_.empty()) length = 1;
  }
  word_ = rest_.substr(0, length);
  rest_.remove_prefix(length);
}

std::string_view TextLine::take() {
  const std::string_view word = word_;
  advance();
  return word;
}

bool TextLine::take_if(std::string_view word) {
  if (word_ != word) return false;
  advance();
  return true;
}

void TextLine::expect(std::string_view word) {
  if (!take_if(word)) fail(fmt::format("\"{}\"", word));
}

void TextLine::expect_end() {
  if (!at_end()) fail("the end of the line");
}

std::string_view TextLine::take_rest() {
  // word_ and rest_ are neighbours in the same text, perhaps with spaces between them.
  const char* begin = word_.data();
  const std::string_view all(begin, static_cast<std::size_t>(rest_.data() + rest_.size() - begin));
  word_ = {};
  rest_ = {};
  return trimmed(all);
}

std::optional<std::int64_t> TextLine::parse_digits(std::string_view digits) const noexcept {
  std::int64_t value = 0;
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

std::int64_t TextLine::take_number(std::string_view what, std::int64_t min, std::int64_t max) {
  const std::optional<std::int64_t> value = parse_digits(word_);
  if (!value || *value < min || *value > max) fail(fmt::format("{} from {} to {}", what, min, max));
  advance();
  return *value;
}

std::int32_t TextLine::take_reference(char letter, std::size_t size) {
  const std::optional<std::int64_t> value =
      is_reference(letter) ? parse_digits(word_.substr(1)) : std::nullopt;
  if (!value || *value >= static_cast<std::int64_t>(size)) {
    if (size == 0) fail(fmt::format("no \"{}\" with a number: there is none", letter));
    fail(fmt::format("{}0 to {}{}", letter, letter, size - 1));
  }
  advance();
  return static_cast<std::int32_t>(*value);
}

Element TextLine::take_element() {
  const std::optional<Element> element = parse_element(word_);
  if (!element) fail("an element type such as float32");
  advance();
  return *element;
}

bool TextLine::is_reference(char letter) const noexcept {
  return word_.size() > 1 && word_.front() == letter && std::ranges::all_of(word_.substr(1), is_digit);
}

void TextLine::fail(std::string_view expected) const {
  const std::string found = at_end() ? "the end of the line" : fmt::format("\"{}\"", shown(word_));
  refuse(fmt::format("line {}: found {}, expected {}", number_, found, expected));
}

}  // namespace onesum::plan
