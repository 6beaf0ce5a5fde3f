// Which tensors a pack is made of: the table beside a plan that turns ranges of a pack into pieces of
// tensors.
//
// The planner writes it, the binder reads it. Tensors are numbered by *tensor slots*; their addresses are a
// table of base pointers that is passed at run, so one plan and one program serve any memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onesum::plan {

// One tensor of a pack, or a part of one. Replica r of it has slot first_input + r, its result on destination
// d first_output + d.
struct PackMember {
  std::size_t elements = 0;
  std::uint32_t first_input = 0;
  std::uint32_t first_output = 0;
  // Elements before the part, in the replicas and in the results.
  std::size_t input_offset = 0;
  std::size_t output_offset = 0;
};

struct PackTable {
  std::vector<PackMember> members;  // one after the other; exactly one for Contract::kConcatenate
  // Contract::kConcatenate: replica r contributes counts[r] elements to each of `outer` rows of the result.
  std::vector<std::size_t> counts;
  std::size_t outer = 1;
  std::size_t first_row = 0;  // rows of the tensors before these

  std::size_t elements() const {
    std::size_t sum = 0;
    for (const PackMember& member : members) sum += member.elements;
    return sum;
  }
};

}  // namespace onesum::plan
