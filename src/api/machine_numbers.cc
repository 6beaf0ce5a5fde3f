#include "api/machine_numbers.h"

#include <unordered_map>

namespace onesum::api {

std::vector<std::int32_t> machine_numbers(std::span<const std::string> texts) {
  std::vector<std::int32_t> numbers;
  std::unordered_map<std::string, std::int32_t> known;
  std::int32_t next = 0;
  for (const std::string& text : texts) {
    const auto found = known.find(text);
    if (found != known.end()) {
      numbers.push_back(found->second);
      continue;
    }
    if (!text.empty()) known.emplace(text, next);
    numbers.push_back(next++);
  }
  return numbers;
}

}  // namespace onesum::api
