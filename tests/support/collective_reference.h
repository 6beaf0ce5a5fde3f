// For tests: what collectives must give, by the plainest code and without anything of src.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <onesum/collective.h>

namespace onesum::testing {

using Bytes = std::vector<std::byte>;

// Of one tensor, over all workers.
struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::kReduce;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::vector<std::size_t> replicas;  // elements of each
  std::vector<std::size_t> results;
  int root = 0;                                  // which replica
  std::vector<std::vector<std::size_t>> splits;  // kAllToAll: of all replicas; none: equal parts
};

// A case in which `parties` replicas have results each: what is shared out has parts of `elements`, and where
// `uneven`, part i has i more of them.
CollectiveCase collective_case(CollectiveKind kind, DType dtype, std::size_t parties, std::size_t elements,
                               bool uneven = false);

// Numbers of the type, different for every replica and element, whose sums depend on their order.
Bytes replica_bytes(const CollectiveCase& its, std::size_t replica, std::uint64_t seed = 1);

// What result `result` holds in the end.
Bytes expected_result(const CollectiveCase& its, std::size_t result, std::uint64_t seed = 1);

}  // namespace onesum::testing
