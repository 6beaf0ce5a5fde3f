// All-reduce specs in text. Nothing but onesum::Error comes out, what can be read is valid and prints back to
// the same specs, and what is valid stays so as values (docs/semantics.md, 6.5).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/error.h>

#include "planner/spec.h"

namespace {

using onesum::AllReduceSpec;
using Specs = std::vector<AllReduceSpec>;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Make>
std::optional<Specs> made(const Make& make) {
  try {
    return make();
  } catch (const onesum::Error& error) {
    require(error.code() == onesum::ErrorCode::kInvalidArgument);
    require(std::string_view(error.what()).size() < 2000);
    return std::nullopt;
  }
}

void check_valid(const Specs& specs) {
  require(!specs.empty());
  std::int64_t last = -1;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    onesum::planner::check_algorithm(specs[i].alg, "");
    require(specs[i].shards >= 1 && specs[i].shards <= 1024);
    const bool is_last = i + 1 == specs.size();
    require(is_last ? specs[i].limit == -1 : specs[i].limit > last);
    last = specs[i].limit;
  }
}

// The input as values: names between line ends, with numbers made of what is between them.
Specs as_values(std::string_view input) {
  Specs specs;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view alg = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    AllReduceSpec spec{std::string(alg)};
    if (input.size() >= 2) {
      spec.shards = static_cast<signed char>(input[0]);
      spec.limit = static_cast<std::int64_t>(static_cast<signed char>(input[1])) * 1024;
      input.remove_prefix(2);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto from_text = made([&] { return onesum::planner::parse_specs(input); });
  const auto from_values = made([&] { return onesum::planner::valid_specs(as_values(input)); });
  for (const auto& specs : {from_text, from_values}) {
    if (!specs) continue;
    check_valid(*specs);
    require(onesum::planner::parse_specs(onesum::planner::text_of_specs(*specs)) == *specs);
    require(onesum::planner::valid_specs(*specs) == *specs);
  }
  return 0;
}
