// One line of a plan's text, read word by word. Used by text_parse.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/element.h"

namespace onesum::plan {

// A cursor over the words of a line: names and numbers (letters, digits, '_'), "->", "..", and single
// characters. Every function that does not find what it expects throws invalid_argument naming the line, what
// was found and what was expected.
class TextLine {
 public:
  TextLine(std::size_t number, std::string_view text);

  std::string_view peek() const noexcept { return word_; }  // empty at the end of the line
  bool at_end() const noexcept { return word_.empty(); }
  std::string_view take();              // the word, and on to the next
  bool take_if(std::string_view word);  // whether it was the next word
  void expect(std::string_view word);
  void expect_end();
  std::string_view take_rest();  // all that is left, without spaces around

  std::int64_t take_number(std::string_view what, std::int64_t min, std::int64_t max);
  std::int32_t take_reference(char letter,
                              std::size_t size);  // "b7": an existing thing's number, below `size`
  Element take_element();
  bool is_reference(char letter) const noexcept;  // whether the next word looks like "b7"

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  void advance();
  std::optional<std::int64_t> parse_digits(std::string_view digits) const noexcept;

  std::size_t number_;
  std::string_view rest_;
  std::string_view word_;
};

}  // namespace onesum::plan
