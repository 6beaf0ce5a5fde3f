// Finds results that share memory with something else.
//
// A result may be exactly the replica it replaces; any other overlap of a result with a result or a replica
// of the same call is refused. Replicas may overlap each other: they are only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace onesum::api {

class OverlapCheck {
 public:
  // What a slot uses of the memory at its base.
  struct Use {
    std::size_t offset = 0;  // bytes
    std::size_t bytes = 0;
    bool is_result = false;
    bool is_replaced = false;  // in place: it stands for nothing of its own, its memory is the result's
  };
  explicit OverlapCheck(std::vector<Use> uses);

  // Two slots that overlap although they must not. Allocates nothing; quick when the addresses lie in the
  // same order as the last time.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::span<std::byte* const> bases);

 private:
  std::vector<Use> uses_;             // by slot
  std::vector<std::uint32_t> order_;  // slots with memory, by address
};

}  // namespace onesum::api
