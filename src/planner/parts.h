// Collectives that hand out parts of tensors: which part goes where.
//
//   reduce_scatter   replicas 0..n [ a b c ]   result 0 gets the sum of a, result 1 that of b, …
//   scatter          the root's    [ a b c ]   the same of one replica
//   all_gather       replica r     [ r ]       every result gets [ 0 1 2 ]
//   all_to_all       replica r     [ ra rb ]   result a gets [ 0a 1a 2a ], result b [ 0b 1b 2b ]
//
// Every part is a reduction, or a copy, by itself: the planner makes a stream of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/request.h"

namespace onesum::planner {

struct Part {
  std::vector<std::uint32_t> replicas;  // by number in the pair
  std::vector<std::uint32_t> results;
  std::size_t elements = 0;
  std::size_t input_offset = 0;   // elements, in each of the replicas
  std::size_t output_offset = 0;  // elements, in each of the results
};

// Of a pair that has a replica and a result at least. Throws invalid_argument, beginning with `name`, where
// the sizes do not fit.
std::vector<Part> parts_of(CallKind kind, const PairInfo& pair, const std::string& name);

}  // namespace onesum::planner
