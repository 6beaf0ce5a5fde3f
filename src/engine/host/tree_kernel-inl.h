// The kernel for any tree and any number of sources, made of passes. Included once per SIMD target.
//
// It works block by block. The blocks of intermediate sums stay in the first-level cache, so memory still
// sees one pass: every source read once, every destination written once. Per block it is a stack machine over
// `merges`, with two short cuts: canonical subtrees of 8, 4, 3 or 2 sources are one pass, and so is the last
// addition together with division, conversion and the stores.
#if defined(ONESUM_ENGINE_HOST_TREE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESUM_ENGINE_HOST_TREE_KERNEL_INL_H_
#undef ONESUM_ENGINE_HOST_TREE_KERNEL_INL_H_
#else
#define ONESUM_ENGINE_HOST_TREE_KERNEL_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "engine/device.h"
#include "engine/host/passes.h"

HWY_BEFORE_NAMESPACE();
namespace onesum::engine::host::HWY_NAMESPACE {

const Passes* find_passes(Combine combine, Element input, Element output) noexcept;  // simd_kernels.cc

class TreeMachine {
 public:
  explicit TreeMachine(const KernelArgs& args) noexcept;
  void run() noexcept;

 private:
  static constexpr std::size_t kScratchBytes = std::size_t{16} << 10;
  static constexpr std::size_t kLevelBytes = std::size_t{4} << 10;
  static constexpr std::size_t kDestinationsAtOnce = 32;

  void run_block() noexcept;
  std::size_t push(std::size_t source) noexcept;
  void merge() noexcept;
  void finish(std::size_t operands) noexcept;
  std::size_t stack_depth() const noexcept;
  std::byte* level(std::size_t depth) noexcept { return scratch_ + depth * level_bytes_; }

  const KernelArgs& args_;
  const Passes* push_ = nullptr;
  const Passes* add_ = nullptr;
  const Passes* finish_ = nullptr;
  bool can_finish_two_ = false;
  ReduceForm inner_form_;  // of passes into scratch: one destination, undivided
  std::size_t input_bytes_ = 0;
  std::size_t output_bytes_ = 0;
  std::size_t level_bytes_ = 0;
  std::size_t begin_ = 0;  // the block
  std::size_t count_ = 0;
  std::size_t depth_ = 0;
  const std::byte* stack_[kMaxTreeDepth];  // sums in the accumulator type: in scratch, or a source itself
  alignas(64) std::byte scratch_[kScratchBytes];
};

inline TreeMachine::TreeMachine(const KernelArgs& args) noexcept : args_(args) {
  const ReduceForm& form = *args.form;
  const Combine combine = combine_in(form);
  push_ = find_passes(combine, form.input, form.accumulator);
  add_ = find_passes(combine, form.accumulator, form.accumulator);
  finish_ = find_passes(combine, form.accumulator, form.output);
  // More destinations than one pass takes are written from scratch, not from sources that they may be.
  can_finish_two_ = (*finish_)[2] != nullptr && form.destinations <= kDestinationsAtOnce;
  input_bytes_ = size_of(form.input);
  output_bytes_ = size_of(form.output);
  level_bytes_ = std::min(kLevelBytes, kScratchBytes / stack_depth() / 64 * 64);
}

inline std::size_t TreeMachine::stack_depth() const noexcept {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const std::uint8_t merges : args_.form->merges) {
    deepest = std::max(deepest, ++depth);
    depth -= merges;
  }
  return deepest;
}

inline void TreeMachine::run() noexcept {
  const std::size_t block = level_bytes_ / size_of(args_.form->accumulator);
  // The first block ends where a cache line of the first destination does, so that the others begin with one.
  const auto address = reinterpret_cast<std::uintptr_t>(args_.destinations[0] + args_.first * output_bytes_);
  const std::size_t line = std::max<std::size_t>(1, 64 / output_bytes_);
  count_ = block - address / output_bytes_ % line % block;
  const std::size_t end = args_.first + args_.count;
  for (begin_ = args_.first; begin_ < end; begin_ += count_, count_ = block) {
    count_ = std::min(count_, end - begin_);
    run_block();
  }
}

inline void TreeMachine::run_block() noexcept {
  const std::span<const std::uint8_t> merges = args_.form->merges;
  depth_ = 0;
  for (std::size_t source = 0; source < merges.size();) {
    const std::size_t taken = push(source);
    source += taken;
    std::size_t pending = merges[source - 1] - std::size_t{taken == 1 ? std::uint8_t{0} : last_merges(taken)};
    if (source == merges.size() && pending > 0 && can_finish_two_) --pending;  // left to finish()
    for (; pending > 0; --pending) merge();
  }
  finish(depth_);
}

// Pushes the largest canonical subtree that begins at `source`; returns how many sources it took.
inline std::size_t TreeMachine::push(std::size_t source) noexcept {
  const std::span<const std::uint8_t> merges = args_.form->merges.subspan(source);
  std::size_t take = 1;
  for (const std::size_t candidate : std::array<std::size_t, 4>{8, 4, 3, 2}) {
    if ((*push_)[candidate] != nullptr && begins_with_canonical_tree(merges, candidate)) {
      take = candidate;
      break;
    }
  }
  const std::size_t offset = begin_ * input_bytes_;
  if (take == 1 && args_.form->input == args_.form->accumulator) {
    stack_[depth_++] = args_.sources[source] + offset;
    return 1;
  }
  const std::byte* sources[kMaxPassSources];
  for (std::size_t i = 0; i < take; ++i) sources[i] = args_.sources[source + i] + offset;
  std::byte* const to = level(depth_);
  (*push_)[take]({&inner_form_, &to, sources, 0, count_});
  stack_[depth_++] = to;
  return take;
}

inline void TreeMachine::merge() noexcept {
  const std::byte* const sources[2] = {stack_[depth_ - 2], stack_[depth_ - 1]};
  std::byte* const to = level(depth_ - 2);
  (*add_)[2]({&inner_form_, &to, sources, 0, count_});
  --depth_;
  stack_[depth_ - 1] = to;
}

// Writes the sum of the one or two entries on the stack to the destinations.
inline void TreeMachine::finish(std::size_t operands) noexcept {
  std::byte* to[kDestinationsAtOnce];
  ReduceForm form = *args_.form;
  for (std::size_t first = 0; first < args_.form->destinations; first += form.destinations) {
    form.destinations = std::min(kDestinationsAtOnce, args_.form->destinations - first);
    for (std::size_t i = 0; i < form.destinations; ++i) {
      to[i] = args_.destinations[first + i] + begin_ * output_bytes_;
    }
    (*finish_)[operands]({&form, to, stack_, 0, count_});
  }
}

inline void run_tree(const KernelArgs& args) noexcept { TreeMachine(args).run(); }

}  // namespace onesum::engine::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESUM_ENGINE_HOST_TREE_KERNEL_INL_H_
