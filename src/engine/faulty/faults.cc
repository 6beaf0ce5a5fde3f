#include "engine/faulty/faults.h"

#include <algorithm>
#include <array>
#include <limits>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::engine {
namespace {

// In the order of FaultAction.
constexpr std::array<std::string_view, 7> kActions = {"delay", "drop", "truncate", "corrupt",
                                                      "die",   "stop", "exit"};
constexpr std::array<std::string_view, 7> kFields = {"rank", "epoch", "beat", "op", "do", "ms", "status"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The text before the first `mark`, which is taken off together with it.
std::string_view take_until(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(taken);
}

class Parser {
 public:
  explicit Parser(std::string_view fault) : text_(fault) {}

  Fault parse() {
    std::string_view rest = text_;
    bool is_last = false;
    while (!is_last) {
      is_last = rest.find(',') == std::string_view::npos;
      set(take_until(rest, ','));
    }
    check();
    return fault_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument, "fault " + quoted(text_) + ": " + why);
  }

  static std::string guess(std::string_view text, std::span<const std::string_view> names) {
    const auto likely = text.empty() ? std::nullopt : nearest(text, names);
    return likely ? "; did you mean " + std::string(*likely) + "?" : "; expected " + listed(names);
  }

  std::uint64_t number(std::string_view name, std::string_view value, std::uint64_t most) const {
    const auto read = parse_number(value, most);
    if (!read) {
      refuse(std::string(name) + " is " + quoted(value) + "; expected a number from 0 to " +
             std::to_string(most));
    }
    return *read;
  }

  void set(std::string_view field) {
    std::string_view value = field;
    const std::string_view name = take_until(value, '=');
    value = trimmed(value);
    const auto known = std::ranges::find(kFields, name);
    if (known == kFields.end()) refuse("unknown field " + quoted(field) + guess(name, kFields));
    bool& is_given = given_.at(static_cast<std::size_t>(known - kFields.begin()));
    if (is_given) refuse(std::string(name) + " is given twice");
    is_given = true;
    set(name, value);
  }

  void set(std::string_view name, std::string_view value) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();
    if (name == "rank") fault_.rank = static_cast<int>(number(name, value, std::numeric_limits<int>::max()));
    if (name == "epoch") fault_.epoch = static_cast<std::uint32_t>(number(name, value, kMost32));
    if (name == "beat") fault_.beat = number(name, value, kMost);
    if (name == "op") fault_.op = number(name, value, kMost);
    if (name == "do") fault_.action = action(value);
    if (name == "ms") fault_.milliseconds = static_cast<std::uint32_t>(number(name, value, kMost32));
    if (name == "status") fault_.status = static_cast<int>(number(name, value, 255));
  }

  FaultAction action(std::string_view value) const {
    const auto found = std::ranges::find(kActions, value);
    if (found == kActions.end()) refuse("unknown action " + quoted(value) + guess(value, kActions));
    return static_cast<FaultAction>(found - kActions.begin());
  }

  bool has(std::string_view name) const {
    return given_.at(static_cast<std::size_t>(std::ranges::find(kFields, name) - kFields.begin()));
  }

  void check() const {
    if (!has("do")) refuse("do= is missing; expected do= with " + listed(kActions));
    const bool is_delay = fault_.action == FaultAction::kDelay;
    if (is_delay && !has("ms")) refuse("do=delay needs ms=, the milliseconds");
    if (!is_delay && has("ms")) refuse("ms= belongs to do=delay");
    if (fault_.action != FaultAction::kExit && has("status")) refuse("status= belongs to do=exit");
  }

  std::string_view text_;
  Fault fault_;
  std::array<bool, kFields.size()> given_{};
};

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::string_view fault = take_until(text, ';');
    if (!fault.empty()) faults.push_back(Parser(fault).parse());
  }
  return faults;
}

std::string to_string(const Fault& fault) {
  std::string text;
  if (fault.rank) text += "rank=" + std::to_string(*fault.rank) + ",";
  text += "epoch=" + std::to_string(fault.epoch) + ",beat=" + std::to_string(fault.beat) +
          ",op=" + std::to_string(fault.op) +
          ",do=" + std::string(kActions.at(static_cast<std::size_t>(fault.action)));
  if (fault.action == FaultAction::kDelay) text += ",ms=" + std::to_string(fault.milliseconds);
  if (fault.action == FaultAction::kExit) text += ",status=" + std::to_string(fault.status);
  return text;
}

}  // namespace onesum::engine
