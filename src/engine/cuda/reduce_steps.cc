#include "engine/cuda/reduce_steps.h"

namespace onesum::engine::cuda {
namespace {

class Tree {
 public:
  Tree(std::span<const std::uint8_t> merges, std::span<const std::uint8_t> is_wide) noexcept;
  void write(ReduceSteps& steps) const noexcept { write(root_, steps); }

 private:
  using Index = std::uint16_t;
  static constexpr Index kNone = 0xFFFF;

  struct Node {
    Index left;  // kNone: a source
    Index right;
    std::uint8_t needs;  // sums at once, if the operand that needs more is formed first
    bool is_wide;
  };

  Index join(Index left, Index right) noexcept;
  bool is_source(Index node) const noexcept { return nodes_[node].left == kNone; }
  bool is_narrow(Index node) const noexcept { return is_source(node) && !nodes_[node].is_wide; }
  bool is_pair(Index node) const noexcept {
    return !is_source(node) && is_narrow(nodes_[node].left) && is_narrow(nodes_[node].right);
  }
  bool is_pair_of_pairs(Index node) const noexcept {
    return !is_source(node) && is_pair(nodes_[node].left) && is_pair(nodes_[node].right);
  }
  bool is_one_step(Index node) const noexcept {
    return is_source(node) || is_pair(node) || is_pair_of_pairs(node);
  }
  void write(Index node, ReduceSteps& steps) const noexcept;
  void write_sources(Index node, ReduceSteps& steps) const noexcept;

  std::size_t num_nodes_ = 0;
  std::array<Node, 2 * ReduceSteps::kMaxSources> nodes_;  // the sources first, by number
  Index root_ = 0;
};

Tree::Tree(std::span<const std::uint8_t> merges, std::span<const std::uint8_t> is_wide) noexcept
    : num_nodes_(merges.size()) {
  std::array<Index, ReduceSteps::kMaxSources> stack;
  std::size_t depth = 0;
  for (std::size_t source = 0; source < merges.size(); ++source) {
    nodes_[source] = {kNone, kNone, 1, !is_wide.empty() && is_wide[source] != 0};
    stack[depth++] = static_cast<Index>(source);
    for (int merge = 0; merge < merges[source]; ++merge) {
      --depth;
      stack[depth - 1] = join(stack[depth - 1], stack[depth]);
    }
  }
  root_ = stack[0];
}

Tree::Index Tree::join(Index left, Index right) noexcept {
  const auto node = static_cast<Index>(num_nodes_++);
  const int l = nodes_[left].needs;
  const int r = nodes_[right].needs;
  nodes_[node] = {left, right, 1, false};
  if (!is_one_step(node)) nodes_[node].needs = static_cast<std::uint8_t>(l == r ? l + 1 : l > r ? l : r);
  return node;
}

void Tree::write(Index node, ReduceSteps& steps) const noexcept {
  if (is_one_step(node)) {
    const ReduceStep::Kind kind = is_pair_of_pairs(node) ? ReduceStep::kFour
                                  : is_pair(node)        ? ReduceStep::kTwo
                                  : nodes_[node].is_wide ? ReduceStep::kOneWide
                                                         : ReduceStep::kOne;
    steps.steps[steps.num_steps++] = {kind, 0};
    return write_sources(node, steps);
  }
  const auto [left, right, needs, is_wide] = nodes_[node];
  const bool is_right_first = nodes_[right].needs > nodes_[left].needs;
  write(is_right_first ? right : left, steps);
  write(is_right_first ? left : right, steps);
  ++steps.steps[steps.num_steps - 1].merges;
}

void Tree::write_sources(Index node, ReduceSteps& steps) const noexcept {
  if (is_source(node)) {
    steps.order[steps.num_sources++] = node;
  } else {
    write_sources(nodes_[node].left, steps);
    write_sources(nodes_[node].right, steps);
  }
}

}  // namespace

ReduceSteps::ReduceSteps(std::span<const std::uint8_t> merges,
                         std::span<const std::uint8_t> is_wide) noexcept {
  Tree(merges, is_wide).write(*this);
}

}  // namespace onesum::engine::cuda
