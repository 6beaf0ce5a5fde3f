#include "api/row_groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace onesum::api {
namespace {

struct Occurrence {
  std::size_t row = 0;
  std::size_t position = 0;
};

std::vector<Occurrence> occurrences_of(std::span<const std::vector<std::size_t>> indices) {
  std::size_t count = 0;
  for (const std::vector<std::size_t>& replica : indices) count += replica.size();
  std::vector<Occurrence> occurrences;
  occurrences.reserve(count);
  for (const std::vector<std::size_t>& replica : indices) {
    for (const std::size_t row : replica) occurrences.push_back({row, occurrences.size()});
  }
  return occurrences;
}

// Stable, so that positions stay in order: a counting sort by each byte of the row, the lowest first. Several
// times as fast as a sort by comparison from some ten thousand rows on.
void sort_by_row(std::vector<Occurrence>& occurrences) {
  std::size_t bits = 0;  // that any row has
  for (const Occurrence& occurrence : occurrences) bits |= occurrence.row;
  std::vector<Occurrence> sorted(occurrences.size());
  for (int shift = 0; shift < 64 && bits >> shift != 0; shift += 8) {
    const auto digit = [&](const Occurrence& occurrence) { return occurrence.row >> shift & 0xFF; };
    std::array<std::size_t, 257> begin{};  // where rows with a digit go
    for (const Occurrence& occurrence : occurrences) ++begin[digit(occurrence) + 1];
    for (std::size_t d = 1; d < begin.size(); ++d) begin[d] += begin[d - 1];
    for (const Occurrence& occurrence : occurrences) sorted[begin[digit(occurrence)]++] = occurrence;
    std::swap(occurrences, sorted);
  }
}

// The additions of the canonical tree over those replicas that take part, told in ascending order.
//
// The tree splits at multiples of powers of two: replicas a < b meet in a node whose level is the highest bit
// in which they differ. Levels of nodes whose right side is still to come are bits of `pending_`.
class SparseTree {
 public:
  // Of the replica `from`, when `to` is the next one: the additions that are due between them.
  std::uint8_t merges_before(std::size_t from, std::size_t to) noexcept {
    const std::size_t node = std::bit_floor(from ^ to);
    const int due = std::popcount(pending_ & (node - 1));
    pending_ = (pending_ & ~(node - 1)) | node;
    return static_cast<std::uint8_t>(due);
  }
  std::uint8_t merges_at_end() const noexcept { return static_cast<std::uint8_t>(std::popcount(pending_)); }

 private:
  std::size_t pending_ = 0;
};

// Where each replica's positions end.
std::vector<std::size_t> ends_of(std::span<const std::vector<std::size_t>> indices) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (const std::vector<std::size_t>& replica : indices) ends.push_back(end += replica.size());
  return ends;
}

// The additions after each of a row's occurrences.
void append_merges(std::span<const Occurrence> row, std::span<const std::size_t> ends,
                   std::vector<std::uint8_t>& merges) {
  if (row.size() == 1) return merges.push_back(0);
  const auto replica_of = [&](const Occurrence& occurrence) {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends, occurrence.position) - ends.begin());
  };
  SparseTree tree;
  std::uint8_t in_replica = 0;  // 1: there is a sum of this replica's occurrences to add to
  std::size_t replica = replica_of(row.front());
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    const std::size_t next = replica_of(row[i + 1]);
    const bool is_last = next != replica;
    merges.push_back(is_last ? static_cast<std::uint8_t>(in_replica + tree.merges_before(replica, next))
                             : in_replica);
    in_replica = is_last ? 0 : 1;
    replica = next;
  }
  merges.push_back(static_cast<std::uint8_t>(in_replica + tree.merges_at_end()));
}

}  // namespace

RowGroups group_rows(std::span<const std::vector<std::size_t>> indices) {
  std::vector<Occurrence> occurrences = occurrences_of(indices);
  sort_by_row(occurrences);
  const std::vector<std::size_t> ends = ends_of(indices);
  RowGroups groups;
  groups.positions.reserve(occurrences.size());
  groups.merges.reserve(occurrences.size());
  for (const Occurrence& occurrence : occurrences) groups.positions.push_back(occurrence.position);
  for (std::size_t begin = 0; begin < occurrences.size();) {
    const std::size_t row = occurrences[begin].row;
    std::size_t end = begin + 1;
    while (end < occurrences.size() && occurrences[end].row == row) ++end;
    groups.rows.push_back(row);
    groups.first.push_back(begin);
    append_merges(std::span(occurrences).subspan(begin, end - begin), ends, groups.merges);
    begin = end;
  }
  groups.first.push_back(occurrences.size());
  return groups;
}

}  // namespace onesum::api
