// Grammar of device strings (rules: docs/semantics.md, section 1):
//
//   device = [ part ] { "/" [ part ] }
//   part   = "job:" name | "replica:" number | "task:" number
//          | type [ ":" index ]              type: CPU, GPU, TPU, CUSTOM, EPU, in any case
//          | "device:" name ":" index
//   index  = number | "*"
//   name   = letter or digit, then letters, digits, "_", "-" and "."
//   number = decimal digits, at most 2147483647
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include <onesum/device.h>
#include <onesum/error.h>

#include "base/hash.h"
#include "base/text.h"

namespace onesum {
namespace {

constexpr std::array<std::string_view, 5> kShortTypes = {"CPU", "GPU", "TPU", "CUSTOM", "EPU"};

bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && is_letter_or_digit(text.front()) && std::ranges::all_of(text, [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

struct Fields {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> index;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Fields parse() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      part_ = rest.substr(0, slash);
      rest.remove_prefix(std::min(slash + 1, rest.size()));
      if (!part_.empty()) parse_part();
    }
    return std::move(fields_);
  }

 private:
  void parse_part() {
    const std::size_t colon = part_.find(':');
    const std::string_view key = part_.substr(0, colon);
    std::optional<std::string_view> value;
    if (colon != std::string_view::npos) value = part_.substr(colon + 1);
    if (key == "job" && value) {
      fields_.job = name(*value, "job name");
    } else if (key == "replica" && value) {
      fields_.replica = number(*value, "replica");
    } else if (key == "task" && value) {
      fields_.task = number(*value, "task");
    } else if (key == "device" && value) {
      parse_long_device(*value);
    } else if (std::ranges::find(kShortTypes, upper_case(key)) != kShortTypes.end()) {
      set_device(upper_case(key), value.value_or("*"));
    } else {
      fail("is not known; expected job:NAME, replica:N, task:N, CPU:N, GPU:N or device:TYPE:N");
    }
  }

  void parse_long_device(std::string_view value) {
    const std::size_t colon = value.find(':');
    if (colon == std::string_view::npos) fail("has no index; expected device:TYPE:N or device:TYPE:*");
    set_device(upper_case(name(value.substr(0, colon), "device type")), value.substr(colon + 1));
  }

  void set_device(std::string type, std::string_view index) {
    if (fields_.type) fail("names a second device; expected one");
    fields_.type = std::move(type);
    if (index != "*") fields_.index = number(index, "index");
  }

  std::string name(std::string_view value, const char* what) const {
    if (!is_name(value)) {
      fail(std::string("has ") + what + " " + quoted(value) +
           "; expected letters, digits, '_', '-' and '.', first a letter or digit");
    }
    return std::string(value);
  }

  int number(std::string_view value, const char* what) const {
    constexpr int kLargest = std::numeric_limits<int>::max();
    const auto parsed = parse_number(value, kLargest);
    if (!parsed) {
      fail(std::string("has ") + what + " " + quoted(value) + "; expected a number from 0 to " +
           std::to_string(kLargest));
    }
    return static_cast<int>(*parsed);
  }

  [[noreturn]] void fail(const std::string& problem) const {
    const std::string part = part_ == text_ ? "" : "part " + quoted(part_) + " ";
    throw Error(ErrorCode::kInvalidArgument,
                "device " + quoted(text_) + ": " + (part.empty() ? "it " : part) + problem);
  }

  std::string_view text_;
  std::string_view part_;
  Fields fields_;
};

}  // namespace

Device::Device(std::string_view text) {
  Fields fields = Parser(text).parse();
  job_ = std::move(fields.job);
  replica_ = fields.replica;
  task_ = fields.task;
  type_ = std::move(fields.type);
  index_ = fields.index;
  rehash();
}

bool Device::is_empty() const noexcept { return !job_ && !replica_ && !task_ && !type_ && !index_; }

bool Device::is_complete() const noexcept { return job_ && replica_ && task_ && type_ && index_; }

Device Device::merged_over(const Device& defaults) const {
  Device merged = *this;
  if (!merged.job_) merged.job_ = defaults.job_;
  if (!merged.replica_) merged.replica_ = defaults.replica_;
  if (!merged.task_) merged.task_ = defaults.task_;
  if (!merged.type_) merged.type_ = defaults.type_;
  if (!merged.index_) merged.index_ = defaults.index_;
  merged.rehash();
  return merged;
}

Device Device::canonical(const Device& defaults) const {
  if (is_complete()) return *this;
  Device complete = merged_over(defaults);
  if (!complete.job_) complete.job_ = "localhost";
  if (!complete.replica_) complete.replica_ = 0;
  if (!complete.task_) complete.task_ = 0;
  if (!complete.type_) complete.type_ = "CPU";
  if (!complete.index_) complete.index_ = 0;
  complete.rehash();
  return complete;
}

Device Device::host() const {
  Device host = *this;
  host.type_ = "CPU";
  host.index_ = 0;
  host.rehash();
  return host;
}

std::string Device::to_string() const {
  std::string text;
  if (job_) text += "/job:" + *job_;
  if (replica_) text += "/replica:" + std::to_string(*replica_);
  if (task_) text += "/task:" + std::to_string(*task_);
  if (type_) text += "/device:" + *type_ + ":" + (index_ ? std::to_string(*index_) : "*");
  return text;
}

bool operator==(const Device& a, const Device& b) noexcept {
  return a.hash_ == b.hash_ && a.index_ == b.index_ && a.task_ == b.task_ && a.replica_ == b.replica_ &&
         a.type_ == b.type_ && a.job_ == b.job_;
}

void Device::rehash() noexcept {
  if (is_empty()) {  // as a Device() has it
    hash_ = 0;
    return;
  }
  Hasher hasher;
  const auto add_number = [&hasher](std::optional<int> field) {
    hasher.add(field ? static_cast<std::uint64_t>(*field) : ~std::uint64_t{0});
  };
  const auto add_text = [&hasher](const std::optional<std::string>& field) {
    hasher.add(field ? std::string_view(*field) : std::string_view());  // a set field is never empty
  };
  add_text(job_);
  add_number(replica_);
  add_number(task_);
  add_text(type_);
  add_number(index_);
  hash_ = hasher.finish().low;
}

}  // namespace onesum
