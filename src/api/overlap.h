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
  // `bytes` of every slot, which of them are results, and which replicas are replaced in place (these stand
  // for nothing of their own: their memory is the result's).
  OverlapCheck(std::vector<std::size_t> bytes, std::vector<bool> is_result,
               const std::vector<bool>& is_replaced);

  // Two slots that overlap although they must not. Allocates nothing; quick when the addresses lie in the
  // same order as the last time.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::span<std::byte* const> bases);

 private:
  std::vector<std::size_t> bytes_;
  std::vector<bool> is_result_;
  std::vector<std::uint32_t> order_;  // slots with memory, by address
};

}  // namespace onesum::api
