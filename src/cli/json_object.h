// One JSON object, printed as one line. Keys keep the order in which they were set.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::cli {

class JsonObject {
 public:
  JsonObject();
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  JsonObject& set(std::string_view key, std::string_view value);
  JsonObject& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  JsonObject& set(std::string_view key, bool value);
  JsonObject& set(std::string_view key, double value);
  JsonObject& set(std::string_view key, std::integral auto value) {
    return set_number(key, static_cast<std::int64_t>(value));
  }
  JsonObject& set(std::string_view key, const JsonObject& value);
  JsonObject& set(std::string_view key, const std::vector<JsonObject>& values);
  JsonObject& set(std::string_view key, const std::vector<std::string>& values);

  // Text that is not UTF-8 (a path, a device string from outside) is printed with replacement characters.
  std::string line() const;

 private:
  JsonObject& set_number(std::string_view key, std::int64_t value);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `value` rounded to so many decimals: what a measurement can tell.
double rounded(double value, int decimals);

}  // namespace onesum::cli
