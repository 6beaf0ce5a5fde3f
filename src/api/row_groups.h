// Which rows of several replicas' IndexedSlices belong together, and in which order they are added.
//
// A row's occurrences are added from left to right inside each replica, by position, and the replicas' sums
// in canonical order (docs/semantics.md, rules 3.3 and 4.7). A replica that does not have the row is left
// out: a node of the tree with one side missing is its other side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onesum::api {

struct RowGroups {
  std::vector<std::size_t> rows;   // the indices that occur, ascending, each once
  std::vector<std::size_t> first;  // of each row, where its occurrences begin below; and, last, their number
  std::vector<std::size_t> positions;  // of each occurrence, in all replicas' rows one after the other
  std::vector<std::uint8_t> merges;    // of each occurrence, the additions after it (plan/plan.h, Operand)
};

// `indices` of each replica, in replica order. Time and memory are proportional to their number.
RowGroups group_rows(std::span<const std::vector<std::size_t>> indices);

}  // namespace onesum::api
