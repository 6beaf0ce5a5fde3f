// From a form and pieces to the arguments of launches. Without CUDA: tests use it where there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/cuda/kernel_forms.h"
#include "engine/cuda/reduce_arguments.h"
#include "engine/cuda/reduce_steps.h"
#include "engine/device.h"

namespace onesum::engine::cuda {

using LaunchPiece = QueuedPiece;

// What the launches of one form have in common. Keeps neither the form nor what it points to, allocates
// nothing.
class LaunchWriter {
 public:
  // `is_wide`: which sources are of the accumulator's type already; empty for none. Throws invalid_argument
  // as find_kernel_form does, if the flags are not one for each source, and if a copy has one: the conversion
  // of a wide source has the accumulator as its input.
  explicit LaunchWriter(const ReduceForm& form, std::span<const std::uint8_t> is_wide = {});

  const KernelForm& kernel() const noexcept { return kernel_; }

  // Makes arguments of as many of the pieces as fit, and returns how many these are: at least one, if there
  // are any. Pieces without elements take no room.
  std::size_t write(std::span<const LaunchPiece> pieces, ReduceArguments& arguments) const noexcept;

  // What the threads of these arguments share.
  std::uint64_t items(const ReduceArguments& arguments) const noexcept;

 private:
  void write_piece(const LaunchPiece& piece, ReduceArguments& arguments) const noexcept;
  std::uint64_t division_of(const std::uint64_t* addresses, std::uint64_t count) const noexcept;
  bool is_wide(std::size_t place) const noexcept;  // of a source, in the order of the steps
  // Of an element of the kernel, at the place of a pointer.
  std::size_t element_bytes(std::size_t place) const noexcept;

  KernelForm kernel_;
  std::int64_t divisor_;
  std::size_t destinations_;
  ReduceSteps steps_;
  std::uint64_t wide_[(ReduceSteps::kMaxSources + 63) / 64] = {};  // bits by place
};

}  // namespace onesum::engine::cuda
