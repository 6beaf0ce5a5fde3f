// What docs/algorithms.md says of each algorithm in words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace onesum::algorithms_doc {

struct Algorithm {
  std::string_view name;     // "nccl/xring"
  std::uint32_t shards = 1;  // in the tables
  std::string_view what;
  std::string_view when;
};

std::span<const Algorithm> over_devices();  // one level
std::span<const Algorithm> over_workers();  // hierarchies
Algorithm over_machines();

}  // namespace onesum::algorithms_doc
