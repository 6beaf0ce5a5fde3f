// Which all-reduce algorithm takes which tensors.
#pragma once

#include <cstdint>
#include <string>

namespace onesum {

// One line of a list that is read from the top: tensors of at most `limit` bytes, of those that no earlier
// line took, are reduced by `alg` in `shards` parallel pieces. A negative limit is none.
struct AllReduceSpec {
  std::string alg;
  int shards = 1;
  std::int64_t limit = -1;  // bytes of the tensor before packing, inclusive
  friend bool operator==(const AllReduceSpec&, const AllReduceSpec&) = default;
};

}  // namespace onesum
