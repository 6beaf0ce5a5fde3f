// Grammar:
//
//   list  = node { "," node }
//   node  = part { part }
//   part  = text | "[" range { "," range } "]"
//   range = digits [ "-" digits ]
//   text  = letters, digits, '-', '_' and '.'
//
//   tasks = item { "," item }
//   item  = digits [ "(x" digits ")" ]
#include "cluster/node_list.h"

#include <algorithm>
#include <utility>

#include <onesum/error.h>

#include "base/config.h"
#include "base/host_port.h"
#include "base/text.h"

namespace onesum::cluster {
namespace {

constexpr std::size_t kMostDigits = 9;

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
}

// A text and a position in it.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool is_at_end() const noexcept { return at_ == text_.size(); }

  bool skip(std::string_view expected) noexcept {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  template <class Predicate>
  std::string_view take_while(Predicate predicate) noexcept {
    const std::size_t from = at_;
    while (at_ < text_.size() && predicate(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  std::string_view digits() {
    const std::string_view taken = take_while([](char c) { return c >= '0' && c <= '9'; });
    if (taken.empty() || taken.size() > kMostDigits) fail("a number of 1 to 9 digits");
    return taken;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(
        ErrorCode::kInvalidArgument,
        "expected " + expected + (is_at_end() ? " at the end" : " before " + quoted(text_.substr(at_, 20))));
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint64_t number(std::string_view digits) { return parse_number(digits, 999'999'999).value_or(0); }

// One name or several, written as one.
class NodeReader {
 public:
  NodeReader(Cursor& cursor, std::size_t most) : cursor_(cursor), most_(most) {}

  std::vector<std::string> read() {
    std::vector<std::string> names = {""};
    do {
      names = combined(names, read_part());
    } while (!cursor_.is_at_end() && !at_comma());
    return names;
  }

  bool at_comma() const noexcept {
    Cursor ahead = cursor_;
    return ahead.skip(",");
  }

 private:
  std::vector<std::string> read_part() {
    if (cursor_.skip("[")) return read_ranges();
    const std::string_view text = cursor_.take_while([](char c) { return c != ',' && c != '[' && c != ']'; });
    if (text.empty()) cursor_.fail("the name of a node");
    return {std::string(text)};
  }

  std::vector<std::string> read_ranges() {
    std::vector<std::string> numbers;
    do {
      const std::string_view low = cursor_.digits();
      const std::string_view high = cursor_.skip("-") ? cursor_.digits() : low;
      if (number(high) < number(low)) cursor_.fail("a range that goes up");
      check_number(numbers.size() + number(high) - number(low) + 1);
      for (std::uint64_t n = number(low); n <= number(high); ++n) numbers.push_back(padded(n, low.size()));
    } while (cursor_.skip(","));
    if (!cursor_.skip("]")) cursor_.fail("']'");
    return numbers;
  }

  std::vector<std::string> combined(const std::vector<std::string>& names,
                                    const std::vector<std::string>& parts) const {
    check_number(names.size() * parts.size());
    std::vector<std::string> result;
    result.reserve(names.size() * parts.size());
    for (const std::string& name : names) {
      for (const std::string& part : parts) {
        result.push_back(name + part);
        if (!is_host(result.back())) cursor_.fail("the name of a node instead of " + quoted(result.back()));
      }
    }
    return result;
  }

  void check_number(std::size_t names) const {
    if (names > most_) cursor_.fail("at most " + std::to_string(most_) + " nodes");
  }

  Cursor& cursor_;
  std::size_t most_;
};

}  // namespace

std::vector<std::string> expand_node_list(std::string_view text, std::size_t most) {
  std::vector<std::string> nodes;
  Cursor cursor(text);
  do {
    std::vector<std::string> more = NodeReader(cursor, most - nodes.size()).read();
    std::ranges::move(more, std::back_inserter(nodes));
  } while (cursor.skip(","));
  return nodes;
}

int tasks_on_node(std::string_view text, std::size_t node) {
  Cursor cursor(text);
  std::uint64_t nodes = 0;
  std::optional<std::uint64_t> found;
  do {
    const std::uint64_t tasks = number(cursor.digits());
    std::uint64_t times = 1;
    if (cursor.skip("(x")) {
      times = number(cursor.digits());
      if (!cursor.skip(")")) cursor.fail("')'");
    }
    if (node >= nodes && node - nodes < times) found = tasks;
    nodes += times;
  } while (cursor.skip(","));
  if (!cursor.is_at_end()) cursor.fail("','");
  if (!found) cursor.fail("tasks of node " + std::to_string(node) + " too,");
  return static_cast<int>(*found);
}

}  // namespace onesum::cluster
