#include "plan/plan.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <onesum/error.h>

namespace onesum::plan {

namespace {

// Part `part` of a vector of `length` elements cut into `level.parts`.
Extent part_of(const SplitLevel& level, std::size_t length, std::size_t part) {
  const std::size_t parts = level.parts;
  if (level.rule == SplitRule::kRagged) {
    const std::size_t each = length / parts;
    const std::size_t offset = each * part;
    return {offset, part + 1 == parts ? length - offset : each};
  }
  const std::size_t each = length / parts + (length % parts != 0 ? 1 : 0);
  const std::size_t offset = std::min(each * part, length);
  return {offset, std::min(each, length - offset)};
}

Extent chunk_extent(const Split& split, std::size_t length, std::size_t chunk) {
  std::size_t below = num_chunks(split);  // chunks in one part of the level at hand
  Extent extent{0, length};
  for (const SplitLevel& level : split) {
    below /= level.parts;
    const Extent part = part_of(level, extent.length, chunk / below);
    extent = {extent.offset + part.offset, part.length};
    chunk %= below;
  }
  return extent;
}

}  // namespace

std::uint32_t num_chunks(const Split& split) noexcept {
  std::uint32_t chunks = 1;
  for (const SplitLevel& level : split) chunks *= level.parts;
  return chunks;
}

Extent extent_of(const Split& split, std::size_t length, std::span<const std::size_t> counts, Chunks chunks) {
  if (chunks.count == 0) return {0, 0};
  const std::size_t end = std::size_t{chunks.first} + chunks.count;
  if (is_by_counts(split)) {
    if (counts.size() < end) {
      throw Error(ErrorCode::kInvalidArgument, "extent of chunk " + std::to_string(end - 1) + ": " +
                                                   std::to_string(counts.size()) + " counts are known");
    }
    Extent extent;
    for (std::size_t i = 0; i < end; ++i) (i < chunks.first ? extent.offset : extent.length) += counts[i];
    return extent;
  }
  const Extent first = chunk_extent(split, length, chunks.first);
  const Extent last = chunk_extent(split, length, end - 1);
  return {first.offset, last.offset + last.length - first.offset};
}

void lay_out_operands(Plan& plan) {
  std::vector<Operand> operands;
  operands.reserve(plan.operands.size());
  for (Lane& lane : plan.lanes) {
    for (Step& step : lane.steps) {
      const auto first = static_cast<std::uint32_t>(operands.size());
      const auto used =
          std::span(plan.operands)
              .subspan(step.first_operand, std::size_t{step.num_destinations} + step.num_sources);
      operands.insert(operands.end(), used.begin(), used.end());
      step.first_operand = first;
    }
  }
  plan.operands = std::move(operands);
}

// Every border between replicas is where exactly one node of the tree is split: the walk looks for the node
// split at theirs.
bool are_siblings(const Block& left, const Block& right, std::size_t n) {
  Block node{0, n};
  while (node.end - node.begin > 1) {
    const std::size_t middle = node.begin + std::bit_floor(node.end - node.begin - 1);
    if (middle == right.begin) {
      return left.end == middle && node.begin == left.begin && node.end == right.end;
    }
    (right.begin < middle ? node.end : node.begin) = middle;
  }
  return false;
}

std::vector<std::uint8_t> canonical_merges(std::span<const std::uint32_t> widths) {
  std::size_t replicas = 0;
  for (const std::uint32_t width : widths) replicas += width;
  std::vector<std::uint8_t> merges;
  merges.reserve(widths.size());
  std::vector<Block> stack;
  std::size_t begin = 0;
  for (const std::uint32_t width : widths) {
    stack.push_back({begin, begin + width});
    begin += width;
    std::uint8_t merged = 0;
    while (width > 0 && stack.size() > 1 && are_siblings(stack[stack.size() - 2], stack.back(), replicas)) {
      stack[stack.size() - 2].end = stack.back().end;
      stack.pop_back();
      ++merged;
    }
    merges.push_back(merged);
  }
  if (stack.size() > 1) {
    const Block& odd = stack[1];
    throw Error(ErrorCode::kInvalidArgument,
                "canonical order of " + std::to_string(replicas) + " replicas: the partial sum of replicas " +
                    std::to_string(odd.begin) + " to " + std::to_string(odd.end - 1) +
                    " cannot be added to what is left of it");
  }
  return merges;
}

std::vector<std::uint8_t> canonical_merges(std::size_t replicas) {
  return canonical_merges(std::vector<std::uint32_t>(replicas, 1));
}

}  // namespace onesum::plan
